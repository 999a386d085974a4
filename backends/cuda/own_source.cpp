#include "backends/cuda/own_source.h"

#include <algorithm>
#include <fmt/format.h>

#include "backends/cpu/adapter/in_place.h"
#include "backends/cpu/adapter/inputs_read.h"
#include "backends/cuda/costs.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/error.h"
#include "core/graph/print.h"
#include "core/ops/reorder.h"

namespace plexaura::cuda {

namespace {

// What launches of one kernel share.
struct Code {
  std::shared_ptr<const Op> op;
  std::function<void(const Call& call)> enqueue;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
};

class OwnLaunch final : public Launch {
 public:
  OwnLaunch(std::shared_ptr<Device> device, std::shared_ptr<const Code> code, const Binding& binding)
      : device_(std::move(device)),
        code_(std::move(code)),
        name_(binding.name != nullptr ? *binding.name : "a kernel without a name"),
        inputs_(views(binding.inputs, code_->inputs)),
        outputs_(views(binding.outputs, code_->outputs)) {}

  void run() override {
    if (std::ranges::all_of(outputs_, [](const View& view) { return view.address == nullptr; })) return;
    code_->enqueue(
        {*code_->op, inputs_, outputs_, device_->compute.get(), name_, device_->wrong_index.address()});
  }

 private:
  static std::vector<View> views(const std::vector<Address>& addresses,
                                 const std::vector<TensorType>& types) {
    std::vector<View> views;
    for (std::size_t i = 0; i < addresses.size(); ++i) views.push_back({addresses[i], &types[i]});
    return views;
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<const Code> code_;
  std::string name_;
  std::vector<View> inputs_;
  std::vector<View> outputs_;
};

class OwnKernel final : public Kernel {
 public:
  OwnKernel(std::shared_ptr<Device> device, Code code)
      : device_(std::move(device)), code_(std::make_shared<const Code>(std::move(code))) {}
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<OwnLaunch>(device_, code_, binding);
  }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<const Code> code_;
};

std::vector<TensorType> types_of(const RegionQuery& query, const std::vector<Value>& values) {
  std::vector<TensorType> types;
  for (const Value value : values) types.push_back(query.type(value));
  return types;
}

std::vector<Layout> row_major(const std::vector<TensorType>& types) {
  std::vector<Layout> layouts;
  for (const TensorType& type : types) layouts.push_back(Layout::row_major(type.shape.rank()));
  return layouts;
}

void require_axes(const RegionQuery& query, const std::vector<TensorType>& types) {
  for (const TensorType& type : types)
    if (type.shape.rank() > most_axes)
      throw UserError(fmt::format(
          "{}: the kernels of the backend 'cuda' take values of up to {} axes, and {} has {}; reshape it, "
          "or use the backend 'cpu'",
          name_of(query.graph, query.region.nodes[0]), most_axes, to_string(type), type.shape.rank()));
}

struct Offer {
  std::function<void(const Call& call)> enqueue;  // empty: none
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

Offer offer_for(const RegionQuery& query, const std::vector<TensorType>& inputs,
                const std::vector<TensorType>& outputs) {
  if (query.op().name() == "reorder") {
    const Layout to = op_cast<Reorder>(query.op()).to();
    const Layout from = query.given[0].value_or(to);
    return {[from, to](const Call& call) { enqueue_reorder(call, from, to); }, {from}, {to}};
  }
  if (const OpKernel kernel = find_kernel(query.op().name()); kernel != nullptr)
    return {kernel, row_major(inputs), row_major(outputs)};
  return {};
}

}  // namespace

std::optional<Candidate> propose_own(const std::shared_ptr<Device>& device, const RegionQuery& query) {
  const std::vector<TensorType> inputs = types_of(query, query.region.inputs);
  const std::vector<TensorType> outputs = types_of(query, query.region.outputs);
  Offer offer = offer_for(query, inputs, outputs);
  if (!offer.enqueue) return std::nullopt;
  require_axes(query, inputs);
  require_axes(query, outputs);
  Candidate candidate;
  candidate.implementation = "cuda";
  candidate.inputs = std::move(offer.inputs);
  candidate.outputs = std::move(offer.outputs);
  candidate.reads = inputs_read(query);
  candidate.in_place = in_place_pairs(query.op(), inputs, outputs);
  candidate.seconds = seconds_of_launch + bytes_of(query) / device->info.bytes_in_a_second +
                      operations_of(query) / operations_of_own_kernels;
  candidate.make = [device, code = Code{query.graph.record(query.region.nodes[0]).op, offer.enqueue, inputs,
                                        outputs}] { return std::make_shared<const OwnKernel>(device, code); };
  return candidate;
}

}  // namespace plexaura::cuda
