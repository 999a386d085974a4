#include "backends/cuda/kernels/kernels.h"

#include <algorithm>

namespace plexaura::cuda {

namespace {

struct Entry {
  std::string_view op;
  OpKernel kernel;
};

constexpr Entry entries[] = {
#define PLEXAURA_OP(name) {#name, cuda_##name},
#include "core/ops/ops.def"
};

}  // namespace

OpKernel find_kernel(std::string_view op_name) {
  const auto* found = std::ranges::find(entries, op_name, &Entry::op);
  return found == std::end(entries) ? nullptr : found->kernel;
}

}  // namespace plexaura::cuda
