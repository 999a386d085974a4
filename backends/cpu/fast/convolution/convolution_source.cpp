#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/fast/convolution/tile_loops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/host/host_adapter.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/convolution.h"

namespace plexaura::fast {

namespace {

using Compute = void (*)(const HostCall& call, const Conv3dOptions& options, portable::AddTile<double> add);

template <class ConvolutionOp, Compute compute>
void compute_2d(const Op& op, const HostCall& call) {
  compute(call, lifted(op_cast<ConvolutionOp>(op).options()), add_tile);
}

template <class ConvolutionOp, Compute compute>
void compute_3d(const Op& op, const HostCall& call) {
  compute(call, op_cast<ConvolutionOp>(op).options(), add_tile);
}

// Returns null for other ops.
HostKernel kernel_for(const std::string& kind) {
  if (kind == "conv2d") return compute_2d<Conv2dOp, convolve>;
  if (kind == "conv2d_input_grad") return compute_2d<Conv2dInputGrad, convolution_input_grad>;
  if (kind == "conv2d_weight_grad") return compute_2d<Conv2dWeightGrad, convolution_weight_grad>;
  if (kind == "conv3d") return compute_3d<Conv3dOp, convolve>;
  if (kind == "conv3d_input_grad") return compute_3d<Conv3dInputGrad, convolution_input_grad>;
  if (kind == "conv3d_weight_grad") return compute_3d<Conv3dWeightGrad, convolution_weight_grad>;
  return nullptr;
}

// Offers convolutions of float64, which oneDNN does not have: the portable kernels, with a faster product of their tiles.
class DoubleConvolutionSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const HostKernel kernel = kernel_for(query.region.kind);
    if (kernel == nullptr || !is_dense(query, DType::float64)) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.make = [=] { return make_host_kernel(query, candidate, kernel); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_double_convolution_source() {
  return std::make_unique<DoubleConvolutionSource>();
}

}  // namespace plexaura::fast
