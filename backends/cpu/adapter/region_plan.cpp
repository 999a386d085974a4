#include "backends/cpu/adapter/region_plan.h"

#include <algorithm>
#include <map>

#include "backends/cpu/adapter/inputs_read.h"

namespace plexaura {

namespace {

using Space = RegionPlan::Space;
using Spot = RegionPlan::Spot;

constexpr std::size_t alignment = 64;

Layout row_major(const TensorType& type) { return Layout::row_major(type.shape.rank()); }

class Planner {
 public:
  Planner(const RegionQuery& query, const std::vector<Layout>& inputs, const std::vector<Layout>& outputs,
          bool accumulate)
      : query_(query),
        region_(query.region),
        input_layouts_(inputs),
        output_layouts_(outputs),
        accumulate_(accumulate) {}

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
    const TensorType& type = query_.type(region_.inputs[0]);
    const Layout& from = input_layouts_[0];
    const Layout& to = output_layouts_[0];
    const Spot src{Space::input, 0};
    if (!accumulate_) {
      plan_.before.push_back({src, from, {Space::output, 0}, to, type});
    } else if (from == to) {
      add_to_output(src, type);
    } else {
      const Spot converted = scratch(to.bytes(type));
      plan_.before.push_back({src, from, converted, to, type});
      add_to_output(converted, type);
    }
  }

  void add_to_output(Spot addend, const TensorType& type) {
    plan_.addend = addend;
    plan_.addend_dtype = type.dtype;
    plan_.addend_elements = output_layouts_[0].elements(type.shape);
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

  // Values made inside: straight to their output where that is plain row-major memory, else to the workspace.
  void place_results() {
    for (const NodeId node : region_.nodes)
      for (std::uint32_t i = 0; i < query_.graph.record(node).types.size(); ++i) {
        const Value value{node, i};
        const auto output =
            static_cast<std::size_t>(std::ranges::find(region_.outputs, value) - region_.outputs.begin());
        const bool wanted = output < region_.outputs.size() && query_.wanted[output];
        if (wanted && output_layouts_[output].is_row_major() && !accumulates(output))
          spots_[value] = {Space::output, output};
        else if (wanted || read_inside(value))
          spots_[value] = scratch(query_.type(value).bytes());
        else
          spots_[value] = {};
      }
  }

  bool accumulates(std::size_t output) const { return output == 0 && accumulate_; }

  bool read_inside(Value value) const {
    return std::ranges::any_of(region_.nodes, [&](NodeId node) {
      const auto& inputs = query_.graph.record(node).inputs;
      return std::ranges::find(inputs, value) != inputs.end();
    });
  }

  void add_call(NodeId node) {
    const NodeRecord& record = query_.graph.record(node);
    RegionPlan::Call call{record.op, find_host_kernel(record.op->name()), {}, {}, {}, record.types};
    for (const Value input : record.inputs) {
      call.inputs.push_back(spots_.at(input));
      call.input_types.push_back(query_.type(input));
    }
    for (std::uint32_t i = 0; i < record.types.size(); ++i) call.outputs.push_back(spots_.at({node, i}));
    plan_.calls.push_back(std::move(call));
  }

  // From the row-major scratch of an output to the output itself.
  void give_back(std::size_t output) {
    const Value value = region_.outputs[output];
    const Layout& to = output_layouts_[output];
    const TensorType& type = query_.type(value);
    Spot spot = spots_.at(value);
    if (!query_.wanted[output] || spot.space == Space::output) return;
    if (!to.is_row_major()) {
      const Spot target = accumulates(output) ? scratch(to.bytes(type)) : Spot{Space::output, output};
      plan_.after.push_back({spot, row_major(type), target, to, type});
      spot = target;
    }
    if (accumulates(output)) add_to_output(spot, type);
  }

  const RegionQuery& query_;
  const Region& region_;
  const std::vector<Layout>& input_layouts_;
  const std::vector<Layout>& output_layouts_;
  const bool accumulate_;
  std::map<Value, Spot> spots_;  // row-major
  RegionPlan plan_;
};

}  // namespace

RegionPlan plan_region(const RegionQuery& query, const std::vector<Layout>& inputs,
                       const std::vector<Layout>& outputs, bool accumulate) {
  return Planner(query, inputs, outputs, accumulate).run();
}

}  // namespace plexaura
