#include "core/host/host_adapter.h"

#include <algorithm>

#include "core/host/costs.h"
#include "core/host/in_place.h"
#include "core/host/inputs_read.h"
#include "core/host/region_plan.h"
#include "core/ops/reorder.h"
#include "core/tensor/reorder_plan.h"

namespace plexaura {

namespace {

// A plan, and the tables for its conversions of layouts.
struct Compiled {
  explicit Compiled(RegionPlan region) : plan(std::move(region)) {
    for (const auto& step : plan.before) before.emplace_back(step.from, step.to, step.type);
    for (const auto& step : plan.after) after.emplace_back(step.from, step.to, step.type);
  }
  RegionPlan plan;
  std::vector<ReorderPlan> before;
  std::vector<ReorderPlan> after;
};

class HostLaunch final : public Launch {
 public:
  HostLaunch(std::shared_ptr<const Compiled> code, const Binding& binding)
      : code_(std::move(code)), binding_(binding) {
    const RegionPlan& plan = code_->plan;
    for (const auto& step : plan.before) before_.push_back({address(step.src), address(step.dst)});
    for (const auto& step : plan.after) after_.push_back({address(step.src), address(step.dst)});
    for (const auto& call : plan.calls)
      calls_.push_back({views(call.inputs, call.input_types), views(call.outputs, call.output_types)});
  }

  void run() override {
    const RegionPlan& plan = code_->plan;
    for (std::size_t i = 0; i < before_.size(); ++i) code_->before[i].run(before_[i].src, before_[i].dst);
    for (std::size_t i = 0; i < calls_.size(); ++i)
      plan.calls[i].kernel(*plan.calls[i].op, {calls_[i].inputs, calls_[i].outputs});
    for (std::size_t i = 0; i < after_.size(); ++i) code_->after[i].run(after_[i].src, after_[i].dst);
  }

 private:
  struct Ends {
    Address src;
    Address dst;
  };
  struct Views {
    std::vector<HostView> inputs;
    std::vector<HostView> outputs;
  };

  Address address(RegionPlan::Spot spot) const {
    switch (spot.space) {
      case RegionPlan::Space::nowhere:
        return nullptr;
      case RegionPlan::Space::input:
        return binding_.inputs[spot.at];
      case RegionPlan::Space::output:
        return binding_.outputs[spot.at];
      case RegionPlan::Space::workspace:
        return binding_.workspace + spot.at;
    }
    return nullptr;
  }

  std::vector<HostView> views(const std::vector<RegionPlan::Spot>& spots,
                              const std::vector<TensorType>& types) const {
    std::vector<HostView> result;
    for (std::size_t i = 0; i < spots.size(); ++i) result.push_back({address(spots[i]), &types[i]});
    return result;
  }

  std::shared_ptr<const Compiled> code_;
  Binding binding_;
  std::vector<Ends> before_;
  std::vector<Ends> after_;
  std::vector<Views> calls_;
};

class HostAdapterKernel final : public Kernel {
 public:
  explicit HostAdapterKernel(RegionPlan plan) : code_(std::make_shared<const Compiled>(std::move(plan))) {}
  std::size_t workspace() const override { return code_->plan.workspace; }
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<HostLaunch>(code_, binding);
  }

 private:
  std::shared_ptr<const Compiled> code_;
};

bool is_reorder(const RegionQuery& query) { return query.op().name() == "reorder"; }

bool has_host_kernels(const RegionQuery& query) {
  return std::ranges::all_of(
      query.region.nodes, [&](NodeId node) { return query.graph.record(node).op->reference() != nullptr; });
}

std::vector<TensorType> types_of(const RegionQuery& query, const std::vector<Value>& values) {
  std::vector<TensorType> types;
  for (const Value value : values) types.push_back(query.type(value));
  return types;
}

double seconds_of(const RegionQuery& query, const Candidate& candidate) {
  auto bytes = static_cast<double>(plan_region(query, candidate.inputs, candidate.outputs).workspace);
  for (std::size_t i = 0; i < candidate.inputs.size(); ++i)
    bytes += static_cast<double>(candidate.inputs[i].bytes(query.type(query.region.inputs[i])));
  for (std::size_t i = 0; i < candidate.outputs.size(); ++i)
    bytes += static_cast<double>(candidate.outputs[i].bytes(query.type(query.region.outputs[i])));
  return costs::seconds_of_launch + bytes / costs::bytes_of_portable_kernels;
}

void choose_layouts(const RegionQuery& query, PreferredLayout preferred, Candidate& candidate) {
  if (is_reorder(query)) {
    const Layout& to = op_cast<Reorder>(query.op()).to();
    candidate.inputs = {query.given[0].value_or(to)};
    candidate.outputs = {to};
    return;
  }
  for (const Value value : query.region.inputs) candidate.inputs.push_back(preferred(query.type(value)));
  for (const Value value : query.region.outputs) candidate.outputs.push_back(preferred(query.type(value)));
}

}  // namespace

Layout row_major_layout(const TensorType& type) { return Layout::row_major(type.shape.rank()); }

std::vector<Candidate> propose_host_kernel(const RegionQuery& query, PreferredLayout preferred) {
  if (!is_reorder(query) && !has_host_kernels(query)) return {};
  Candidate candidate;
  candidate.implementation = "portable";
  choose_layouts(query, preferred, candidate);
  candidate.reads = inputs_read(query);
  if (query.region.nodes.size() == 1)
    candidate.in_place = in_place_pairs(query.op(), types_of(query, query.region.inputs),
                                        types_of(query, query.region.outputs));
  candidate.seconds = seconds_of(query, candidate);
  candidate.make = [query, inputs = candidate.inputs, outputs = candidate.outputs] {
    return std::make_shared<HostAdapterKernel>(plan_region(query, inputs, outputs));
  };
  return {std::move(candidate)};
}

std::shared_ptr<const Kernel> make_host_kernel(const RegionQuery& query, const Candidate& candidate,
                                               HostKernel kernel) {
  RegionPlan plan = plan_region(query, candidate.inputs, candidate.outputs);
  for (auto& call : plan.calls) call.kernel = kernel;
  return std::make_shared<HostAdapterKernel>(std::move(plan));
}

}  // namespace plexaura
