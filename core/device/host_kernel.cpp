#include "core/device/host_kernel.h"

#include <fmt/format.h>
#include <map>
#include <mutex>

#include "core/base/error.h"

namespace plexaura {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, HostKernel, std::less<>> kernels;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

void register_host_kernel(std::string op_name, HostKernel kernel) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto [place, added] = all.kernels.emplace(std::move(op_name), kernel);
  if (!added && place->second != kernel)
    throw UserError(fmt::format("the op '{}' has a host kernel already; give the new op a name of its own",
                                place->first));
}

HostKernel find_host_kernel(std::string_view op_name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.kernels.find(op_name);
  return found == all.kernels.end() ? nullptr : found->second;
}

}  // namespace plexaura
