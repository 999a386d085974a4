#include "backends/cuda/kernels/kernels.h"

#include <algorithm>

#include "backends/cuda/kernels/row_sum.h"

namespace plexaura::cuda {

namespace {

struct Entry {
  std::string_view op;
  OpKernel kernel;
};

constexpr Entry entries[] = {
#define PLEXAURA_CUDA_KERNEL(name) {#name, cuda_##name},
#include "backends/cuda/kernels/kernels.def"
};

constexpr std::string_view on_images[] = {
    "moments",
    "moments_grad",
    "normalise",
    "normalise_grad",
    "max_pool2d",
    "max_pool2d_grad",
    "max_pool2d_gather",
    "avg_pool2d",
    "avg_pool2d_grad",
    "sum",
    "mean",
};

constexpr std::string_view reductions[] = {"sum", "mean", "max", "min", "argmax"};

}  // namespace

OpKernel find_kernel(std::string_view op_name) {
  const auto* found = std::ranges::find(entries, op_name, &Entry::op);
  return found == std::end(entries) ? nullptr : found->kernel;
}

bool knows_channels_last(std::string_view op_name) {
  return std::ranges::find(on_images, op_name) != std::end(on_images);
}

std::size_t workspace_of(std::string_view op_name, const std::vector<TensorType>& inputs,
                         bool channels_last) {
  if (op_name == "gather_grad") return gather_grad_workspace(inputs[1].shape.elements());
  const bool sums_channels = op_name == "moments" || op_name == "normalise_grad";
  if (sums_channels) return channel_sums_workspace(inputs[0], channels_last);
  if (std::ranges::find(reductions, op_name) != std::end(reductions))
    return reduce_workspace(inputs[0].shape.elements());
  const bool sums_samples = op_name == "softmax_cross_entropy" || op_name == "top_k_correct";
  return sums_samples ? row_sum_workspace(inputs[0].shape[0]) : 0;
}

}  // namespace plexaura::cuda
