#include "backends/cpu/portable/portable.h"

#include <mutex>

namespace plexaura {

namespace {

// Another shared object may carry a copy of these kernels and have registered it: the first one stays.
void register_if_new(const char* name, HostKernel kernel) {
  if (find_host_kernel(name) == nullptr) register_host_kernel(name, kernel);
}

}  // namespace

void register_portable_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
#define PLEXAURA_OP(name) register_if_new(#name, portable_##name);
#include "core/ops/ops.def"
  });
}

}  // namespace plexaura
