#include "backends/cpu/cpu_backend.h"

namespace plexaura {

std::vector<std::unique_ptr<const KernelSource>> cpu_kernel_sources() { return {}; }

}  // namespace plexaura
