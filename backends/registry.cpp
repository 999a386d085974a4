#include "backends/registry.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/portable/portable.h"
#include "backends/plugin_loader.h"
#include "core/error.h"

namespace plexaura {

namespace {

struct BuiltIn {
  std::string_view name;
  std::unique_ptr<Backend> (*make)();
};

constexpr BuiltIn built_in[] = {{"cpu", make_cpu_backend}, {"portable", make_portable_backend}};

void require_no_options(std::string_view name, const BackendOptions& options) {
  if (!options.empty())
    throw UserError(
        fmt::format("the backend '{}' has no option '{}'; it has none", name, options.begin()->first));
}

[[noreturn]] void throw_missing(std::string_view name) {
  if (name == "cuda")
    throw UserError(
        fmt::format("the backend 'cuda' needs the plugin plexaura_cuda.so, which is missing in {}; build "
                    "Plexaura with -D PLEXAURA_CUDA=ON (see docs/cuda.md), or use the backend 'cpu'",
                    fmt::join(plugin_folders(), ", ")));
  throw UserError(
      fmt::format("there is no backend '{}'; there are: {} (a plugin plexaura_{}.so is missing in {})", name,
                  fmt::join(known_backends(), ", "), name, fmt::join(plugin_folders(), ", ")));
}

}  // namespace

std::unique_ptr<Backend> open_backend(std::string_view name, const BackendOptions& options) {
  register_portable_kernels();
  for (const BuiltIn& backend : built_in)
    if (backend.name == name) {
      require_no_options(name, options);
      return backend.make();
    }
  const bool may_be_a_file = !name.empty() && name.find('/') == std::string_view::npos;
  const auto file = may_be_a_file ? find_plugin(name) : std::nullopt;
  if (!file) throw_missing(name);
  return open_plugin(*file, options);
}

std::vector<std::string> known_backends() {
  std::vector<std::string> names;
  for (const BuiltIn& backend : built_in) names.emplace_back(backend.name);
  std::ranges::copy(find_plugins(), std::back_inserter(names));
  return names;
}

}  // namespace plexaura
