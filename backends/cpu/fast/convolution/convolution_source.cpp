#include <memory>
#include <optional>
#include <vector>

#include "backends/cpu/fast/convolution/tile_loops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/convolution.h"
#include "core/tensor/host_view.h"

namespace plexaura::fast {

namespace {

using Compute = void (*)(const HostCall& call, const Conv3dOptions& options, portable::AddTile<double> add);

struct Convolution {
  Compute compute;
  Conv3dOptions options;
};

std::optional<Convolution> convolution_of(const RegionQuery& query) {
  const std::string& kind = query.region.kind;
  if (kind == "conv2d") return Convolution{convolve, lifted(op_cast<Conv2dOp>(query.op()).options())};
  if (kind == "conv2d_input_grad")
    return Convolution{convolution_input_grad, lifted(op_cast<Conv2dInputGrad>(query.op()).options())};
  if (kind == "conv2d_weight_grad")
    return Convolution{convolution_weight_grad, lifted(op_cast<Conv2dWeightGrad>(query.op()).options())};
  if (kind == "conv3d") return Convolution{convolve, op_cast<Conv3dOp>(query.op()).options()};
  if (kind == "conv3d_input_grad")
    return Convolution{convolution_input_grad, op_cast<Conv3dInputGrad>(query.op()).options()};
  if (kind == "conv3d_weight_grad")
    return Convolution{convolution_weight_grad, op_cast<Conv3dWeightGrad>(query.op()).options()};
  return std::nullopt;
}

std::vector<HostView> views(const std::vector<TensorType>& types, std::span<const Address> addresses) {
  std::vector<HostView> found;
  for (std::size_t i = 0; i < types.size(); ++i) found.push_back({addresses[i], &types[i]});
  return found;
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query) {
  std::vector<TensorType> inputs;
  for (const Value input : query.region.inputs) inputs.push_back(query.type(input));
  const std::vector<TensorType> outputs{query.type(query.region.outputs[0])};
  return make_kernel([convolution = *convolution_of(query), inputs, outputs](const Binding& at) {
    const std::vector<HostView> operands = views(inputs, at.inputs);
    const std::vector<HostView> results = views(outputs, at.outputs);
    convolution.compute({operands, results}, convolution.options, add_tile);
  });
}

// Offers convolutions of float64, which oneDNN does not have: the portable kernels, with a faster product of their tiles.
class DoubleConvolutionSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!convolution_of(query) || !is_dense(query, DType::float64)) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.make = [query] { return make_for(query); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_double_convolution_source() {
  return std::make_unique<DoubleConvolutionSource>();
}

}  // namespace plexaura::fast
