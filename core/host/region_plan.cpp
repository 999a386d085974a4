#include "core/host/region_plan.h"

#include <algorithm>
#include <map>

#include "core/host/inputs_read.h"

namespace plexaura {

namespace {

using Space = RegionPlan::Space;
using Spot = RegionPlan::Spot;

constexpr std::size_t alignment = 64;

Layout row_major(const TensorType& type) { return Layout::row_major(type.shape.rank()); }

class Planner {
 public:
  Planner(const RegionQuery& query, const std::vector<Layout>& inputs, const std::vector<Layout>& outputs)
      : query_(query), region_(query.region), input_layouts_(inputs), output_layouts_(outputs) {}

  RegionPlan run() && {
    if (query_.op().name() == "reorder") {
      plan_reorder();
    } else {
      place_inputs();
      place_results();
      for (const NodeId node : region_.nodes) add_call(node);
      for (std::size_t output = 0; output < region_.outputs.size(); ++output) give_back(output);
    }
    return std::move(plan_);
  }

 private:
  Spot scratch(std::int64_t bytes) {
    const Spot spot{Space::workspace, plan_.workspace};
    plan_.workspace += (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
    return spot;
  }

  void plan_reorder() {
    plan_.before.push_back({{Space::input, 0},
                            input_layouts_[0],
                            {Space::output, 0},
                            output_layouts_[0],
                            query_.type(region_.inputs[0])});
  }

  void place_inputs() {
    const std::vector<bool> reads = inputs_read(query_);
    for (std::size_t input = 0; input < region_.inputs.size(); ++input) {
      const Value value = region_.inputs[input];
      if (spots_.contains(value)) continue;
      if (!reads[input]) {
        spots_[value] = {};
        continue;
      }
      const TensorType& type = query_.type(value);
      const Spot given{Space::input, input};
      if (input_layouts_[input].is_row_major()) {
        spots_[value] = given;
        continue;
      }
      spots_[value] = scratch(type.bytes());
      plan_.before.push_back({given, input_layouts_[input], spots_[value], row_major(type), type});
    }
  }

  // Decides where the results of nodes lie: in an output of the region if that output is read and row-major,
  // otherwise in the workspace if a node or an output needs them.
  void place_results() {
    for (const NodeId node : region_.nodes)
      for (std::uint32_t i = 0; i < query_.graph.record(node).types.size(); ++i) {
        const Value value{node, i};
        const auto output =
            static_cast<std::size_t>(std::ranges::find(region_.outputs, value) - region_.outputs.begin());
        const bool wanted = output < region_.outputs.size() && query_.wanted[output];
        if (wanted && output_layouts_[output].is_row_major())
          spots_[value] = {Space::output, output};
        else if (wanted || read_inside(value))
          spots_[value] = scratch(query_.type(value).bytes());
        else
          spots_[value] = {};
      }
  }

  bool read_inside(Value value) const {
    return std::ranges::any_of(region_.nodes, [&](NodeId node) {
      const auto& inputs = query_.graph.record(node).inputs;
      return std::ranges::find(inputs, value) != inputs.end();
    });
  }

  void add_call(NodeId node) {
    const NodeRecord& record = query_.graph.record(node);
    RegionPlan::Call call{record.op, record.op->reference(), {}, {}, {}, record.types};
    for (const Value input : record.inputs) {
      call.inputs.push_back(spots_.at(input));
      call.input_types.push_back(query_.type(input));
    }
    for (std::uint32_t i = 0; i < record.types.size(); ++i) call.outputs.push_back(spots_.at({node, i}));
    plan_.calls.push_back(std::move(call));
  }

  // Adds the conversion of an output's row-major copy in the workspace to the output itself.
  void give_back(std::size_t output) {
    const Value value = region_.outputs[output];
    const TensorType& type = query_.type(value);
    const Spot spot = spots_.at(value);
    if (!query_.wanted[output] || spot.space == Space::output) return;
    plan_.after.push_back({spot, row_major(type), {Space::output, output}, output_layouts_[output], type});
  }

  const RegionQuery& query_;
  const Region& region_;
  const std::vector<Layout>& input_layouts_;
  const std::vector<Layout>& output_layouts_;
  std::map<Value, Spot> spots_;  // where the row-major values lie
  RegionPlan plan_;
};

}  // namespace

RegionPlan plan_region(const RegionQuery& query, const std::vector<Layout>& inputs,
                       const std::vector<Layout>& outputs) {
  return Planner(query, inputs, outputs).run();
}

}  // namespace plexaura
