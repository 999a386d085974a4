#include "backends/cuda/offers/own_source.h"

#include <algorithm>
#include <fmt/format.h>

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "backends/cuda/offers/cast_behind.h"
#include "backends/cuda/offers/chain_regions.h"
#include "backends/cuda/offers/channels_last.h"
#include "backends/cuda/offers/costs.h"
#include "backends/cuda/regions/fused_batch_norm.h"
#include "backends/cuda/regions/fused_row_norm.h"
#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/host/in_place.h"
#include "core/host/inputs_read.h"
#include "core/ops/reorder.h"

namespace plexaura::cuda {

namespace {

// The data that all launches of a kernel share.
struct Code {
  std::shared_ptr<const Op> op;
  std::function<void(const Call& call)> enqueue;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  bool channels_last = false;
  std::size_t workspace = 0;
};

class OwnLaunch final : public Launch {
 public:
  OwnLaunch(std::shared_ptr<Device> device, std::shared_ptr<const Code> code, const Binding& binding)
      : device_(std::move(device)),
        code_(std::move(code)),
        name_(binding.name != nullptr ? *binding.name : "a kernel without a name"),
        inputs_(views(binding.inputs, code_->inputs)),
        outputs_(views(binding.outputs, code_->outputs)),
        workspace_(binding.workspace) {}

  void run() override {
    if (std::ranges::all_of(outputs_, [](const View& view) { return view.address == nullptr; })) return;
    const Branch& branch = device_->branch();
    code_->enqueue({*code_->op, inputs_, outputs_, branch.stream, name_, device_->wrong_index.address(),
                    code_->channels_last, workspace_, branch.arrivals});
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
  Address workspace_;
};

class OwnKernel final : public Kernel {
 public:
  OwnKernel(std::shared_ptr<Device> device, Code code)
      : device_(std::move(device)), code_(std::make_shared<const Code>(std::move(code))) {}
  std::size_t workspace() const override { return code_->workspace; }
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

std::vector<Layout> own_layouts(const std::vector<TensorType>& types, bool channels_last) {
  std::vector<Layout> layouts;
  for (const TensorType& type : types)
    layouts.push_back(channels_last ? layout_with_channels_last(type) : Layout::row_major(type.shape.rank()));
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
  Code code;
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  std::vector<bool> reads = {};
  std::vector<std::pair<std::size_t, std::size_t>> in_place = {};
  double bytes_read_again = 0;
};

Offer of_reorder(const RegionQuery& query, Code code) {
  const Layout to = op_cast<Reorder>(query.op()).to();
  const Layout from = query.given[0].value_or(to);
  code.enqueue = [from, to](const Call& call) { enqueue_reorder(call, from, to); };
  return {.code = std::move(code), .inputs = {from}, .outputs = {to}};
}

Offer offer(Code code, bool channels_last) {
  code.channels_last = channels_last;
  if (!code.inputs.empty()) code.workspace = workspace_of(code.op->name(), code.inputs, channels_last);
  return {.code = code,
          .inputs = own_layouts(code.inputs, channels_last),
          .outputs = own_layouts(code.outputs, channels_last)};
}

bool are_images(const std::vector<TensorType>& types) {
  return std::ranges::all_of(types, [](const TensorType& type) { return type.shape.rank() == 4; });
}

// Offers a kernel for images with channels last. An elementwise kernel works in any order of the elements;
// other kernels must support this layout.
std::optional<Offer> offer_channels_last(const Code& code) {
  if (knows_channels_last(code.op->name())) return offer(code, true);
  const auto inputs = with_channels_last(code.inputs);
  const auto outputs = with_channels_last(code.outputs);
  if (!code.op->traits().elementwise || !inputs || !outputs || !are_images(code.outputs)) return std::nullopt;
  Offer moved = offer(code, true);
  moved.code.inputs = *inputs;
  moved.code.outputs = *outputs;
  return moved;
}

bool is_read_by_convolution(const Graph& graph, Value images) {
  for (NodeId node = images.node + 1; node < graph.size(); ++node)
    if (graph.record(node).op->name() == "conv2d" && graph.record(node).inputs[0] == images) return true;
  return false;
}

// True for pixels that a convolution in 16 bits reads. Images are decoded row-major, and that convolution
// needs channels last.
bool is_pixels_for_tensor_cores(const RegionQuery& query, const Code& code) {
  const TensorType& pixels = code.outputs[0];
  return code.op->name() == "normalise_image" && size_of(pixels.dtype) == 2 && pixels.shape.rank() == 4 &&
         is_read_by_convolution(query.graph, query.region.outputs[0]);
}

std::vector<Offer> offers_for_op(const RegionQuery& query, Code code) {
  if (query.op().name() == "reorder") return {of_reorder(query, std::move(code))};
  code.enqueue = find_kernel(query.op().name());
  if (!code.enqueue) return {};
  std::vector<Offer> offers{offer(code, false)};
  if (is_pixels_for_tensor_cores(query, code)) {
    TensorType& pixels = offers[0].code.outputs[0];
    offers[0].code.channels_last = true;
    offers[0].outputs = {has_few_channels(pixels) ? padded() : channels_last()};
    if (has_few_channels(pixels)) pixels.shape = with_padding(pixels.shape);
  }
  if (comes_channels_last(query))
    if (auto moved = offer_channels_last(code)) offers.push_back(std::move(*moved));
  for (Offer& of : offers) {
    of.reads = inputs_read(query);
    of.in_place = in_place_pairs(query.op(), of.code.inputs, of.code.outputs);
  }
  return offers;
}

// Offers a kernel for batch norm. A kernel that computes moments or gradients reads x twice, and in the backward
// pass also the gradient of the result: once for the sums, and once for the result.
Offer of_batch_norm(const Code& of, const FusedBatchNorm& region, bool channels_last) {
  Offer offer{.code = of,
              .inputs = own_layouts(of.inputs, channels_last),
              .outputs = own_layouts(of.outputs, channels_last)};
  offer.code.enqueue = [region](const Call& call) { enqueue_batch_norm_region(call, region); };
  offer.code.channels_last = channels_last;
  offer.code.workspace = batch_norm_region_workspace(of.inputs[0], channels_last);
  for (std::size_t i = 0; i < of.inputs.size(); ++i) offer.reads.push_back(i < region.inputs_read());
  const auto bytes_of_x = static_cast<double>(of.inputs[0].bytes());
  const bool reads_twice = !region.of.forward() || region.of.moments;
  offer.bytes_read_again = (reads_twice ? bytes_of_x : 0) + (region.of.forward() ? 0 : bytes_of_x);
  return offer;
}

// Offers a kernel for a normalisation of rows. The gradients of scale and shift read the elements once more.
Offer of_row_norm(const Code& of, const FusedRowNorm& norm) {
  Offer offer{.code = of, .inputs = own_layouts(of.inputs, false), .outputs = own_layouts(of.outputs, false)};
  offer.code.enqueue = [norm](const Call& call) {
    norm.of.backward ? enqueue_row_norm_grad(call, norm) : enqueue_row_norm(call, norm);
  };
  offer.code.workspace = row_norm_workspace(norm, of.inputs, of.outputs);
  for (std::size_t i = 0; i < of.inputs.size(); ++i) offer.reads.push_back(i < norm.inputs_read());
  // The kernels normalise x again where the gradient of the scale reads the normalised x.
  if (norm.of.scale_grad) offer.reads[norm.normal_input()] = false;
  const std::size_t result = norm.casts_result ? of.outputs.size() - 1 : 0;
  for (const std::size_t input : norm.inputs_of_elements())
    if (of.inputs[input] == of.outputs[result]) offer.in_place.emplace_back(result, input);
  if (norm.of.scale_grad || norm.of.shift_grad)
    offer.bytes_read_again = static_cast<double>(of.inputs[0].bytes() + of.inputs[norm.x_input()].bytes());
  return offer;
}

bool comes_in(const RegionQuery& query, const Chain& chain, const Layout& layout) {
  return std::ranges::any_of(chain.operands, [&](const ChainOperand& operand) {
    return !operand.is_scalar && query.given[operand.input] == layout;
  });
}

// True if the chain consists of casts of a padded value, such as a gradient of weights. A cast also converts
// the padding, since zeros stay zeros.
bool is_cast_of_padded(const RegionQuery& query, const Chain& chain) {
  const auto is_cast = [](const Step& step) { return step.function == StepFunction::cast; };
  return comes_in(query, chain, padded()) && std::ranges::all_of(chain.steps, is_cast);
}

// Offers a kernel for chains. All values of a chain have the same layout, and the kernel processes the
// elements in the order of storage.
Offer of_chains(const RegionQuery& query, const Code& of, const std::vector<Chain>& chains, bool follows) {
  Offer offer{.code = of, .inputs = own_layouts(of.inputs, false), .outputs = own_layouts(of.outputs, false)};
  for (std::size_t i = 0; i < chains.size(); ++i) {
    const bool takes_padding = follows && is_cast_of_padded(query, chains[i]);
    const bool moves = takes_padding || (follows && comes_in(query, chains[i], channels_last()));
    const auto move = [&](Layout& layout, TensorType& type) {
      if (moves) layout = takes_padding ? padded() : channels_last();
      if (takes_padding) type.shape = with_padding(type.shape);
    };
    move(offer.outputs[i], offer.code.outputs[i]);
    for (const ChainOperand& operand : chains[i].operands) {
      if (operand.is_scalar) continue;
      move(offer.inputs[operand.input], offer.code.inputs[operand.input]);
      if (of.inputs[operand.input] == of.outputs[i]) offer.in_place.emplace_back(i, operand.input);
    }
  }
  return offer;
}

std::vector<Offer> offers_for_chains(const RegionQuery& query, Code code) {
  auto chains = std::make_shared<const std::vector<Chain>>(chains_of(query.graph, query.region));
  code.enqueue = [chains](const Call& call) { enqueue_chains(call, *chains); };
  std::vector<Offer> offers{of_chains(query, code, *chains, false)};
  const auto follows = [&](const Chain& chain) {
    return comes_in(query, chain, channels_last()) || is_cast_of_padded(query, chain);
  };
  if (std::ranges::any_of(*chains, follows)) offers.push_back(of_chains(query, code, *chains, true));
  return offers;
}

std::vector<Offer> offers_for(const RegionQuery& query, Code code) {
  if (query.region.nodes.size() == 1) return offers_for_op(query, std::move(code));
  if (is_chains(query.region)) return offers_for_chains(query, std::move(code));
  if (is_cast_behind(query.region)) return offers_for_op(query, std::move(code));
  if (const auto norm = fused_row_norm(query.region.kind)) return {of_row_norm(code, *norm)};
  const auto region = fused_batch_norm(query.region.kind);
  if (!region) return {};
  std::vector<Offer> offers{of_batch_norm(code, *region, false)};
  if (comes_channels_last(query)) offers.push_back(of_batch_norm(code, *region, true));
  for (Offer& of : offers)
    if (!region->of.forward())
      of.in_place = {{region->of.output_in_place(query.region), BatchNormRegion::grad_input}};
  return offers;
}

Candidate candidate_of(const std::shared_ptr<Device>& device, const RegionQuery& query, Offer offer) {
  Candidate candidate;
  candidate.implementation = "cuda";
  candidate.inputs = std::move(offer.inputs);
  candidate.outputs = std::move(offer.outputs);
  candidate.reads = std::move(offer.reads);
  candidate.in_place = std::move(offer.in_place);
  candidate.seconds = seconds_of_launch +
                      (bytes_of(query) + offer.bytes_read_again) / device->info.bytes_in_a_second +
                      operations_of(query) / operations_of_own_kernels;
  candidate.make = [device, code = std::move(offer.code)] {
    return std::make_shared<const OwnKernel>(device, code);
  };
  return candidate;
}

}  // namespace

std::vector<Candidate> propose_own(const std::shared_ptr<Device>& device, const RegionQuery& query) {
  Code code{.op = query.graph.record(query.region.nodes[0]).op,
            .enqueue = {},
            .inputs = types_of(query, query.region.inputs),
            .outputs = types_of(query, query.region.outputs)};
  std::vector<Offer> offers = offers_for(query, std::move(code));
  std::vector<Candidate> candidates;
  if (offers.empty()) return candidates;
  require_axes(query, types_of(query, query.region.inputs));
  require_axes(query, types_of(query, query.region.outputs));
  for (Offer& offer : offers) candidates.push_back(candidate_of(device, query, std::move(offer)));
  return candidates;
}

}  // namespace plexaura::cuda
