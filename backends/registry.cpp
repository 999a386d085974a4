#include "backends/registry.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

#include "backends/cpu/cpu_backend.h"
#include "backends/plugin_loader.h"
#include "core/base/error.h"

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
                    "Plexaura with -D PLEXAURA_CUDA=ON (see docs/guide/gpus.md), or use one of the backends "
                    "that are there: {}",
                    fmt::join(plugin_folders(), ", "), fmt::join(known_backends(), ", ")));
  throw UserError(
      fmt::format("there is no backend '{}'; there are: {} (a plugin plexaura_{}.so is missing in {})", name,
                  fmt::join(known_backends(), ", "), name, fmt::join(plugin_folders(), ", ")));
}

// Parses `text`, for example "device=1,tf32=1", and adds the options to `options`. Throws UserError for a
// wrong text and for an option that is given twice.
void add_options(std::string_view text, std::string_view name, BackendOptions& options) {
  while (true) {
    const std::string_view option = text.substr(0, text.find(','));
    const std::size_t equals = option.find('=');
    if (equals == 0 || equals == std::string_view::npos)
      throw UserError(
          fmt::format("'{}' is not an option of the backend '{}'; write options after the name, as in "
                      "cuda:device=1,tf32=1",
                      option, name));
    if (!options.emplace(option.substr(0, equals), option.substr(equals + 1)).second)
      throw UserError(fmt::format("the option '{}' of the backend '{}' is given twice; give it once",
                                  option.substr(0, equals), name));
    if (option.size() == text.size()) return;
    text.remove_prefix(option.size() + 1);
  }
}

bool may_be_a_file(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos;
}

}  // namespace

std::string_view name_of_backend(std::string_view name_with_options) {
  return name_with_options.substr(0, name_with_options.find(':'));
}

std::unique_ptr<DescribedBackend> open_described_backend(std::string_view name_with_options,
                                                         const std::string& device) {
  const std::string_view name = name_of_backend(name_with_options);
  const auto file = may_be_a_file(name) ? find_describing_plugin(name) : std::nullopt;
  if (!file)
    throw UserError(
        fmt::format("the backend '{}' cannot describe a device that is not there; 'cuda' can, in builds "
                    "without sanitizers",
                    name));
  BackendOptions options{{"describe", device}};
  if (name.size() < name_with_options.size())
    add_options(name_with_options.substr(name.size() + 1), name, options);
  auto backend = open_plugin(*file, options);
  return std::unique_ptr<DescribedBackend>(&dynamic_cast<DescribedBackend&>(*backend.release()));
}

std::unique_ptr<Backend> open_backend(std::string_view name_with_options, BackendOptions options) {
  const std::string_view name = name_of_backend(name_with_options);
  const auto backend = std::ranges::find(built_in, name, &BuiltIn::name);
  const bool is_built_in = backend != std::end(built_in);
  const auto file = may_be_a_file(name) && !is_built_in ? find_plugin(name) : std::nullopt;
  if (!is_built_in && !file) throw_missing(name);
  if (name.size() < name_with_options.size())
    add_options(name_with_options.substr(name.size() + 1), name, options);
  if (!is_built_in) return open_plugin(*file, options);
  require_no_options(name, options);
  return backend->make();
}

std::vector<std::string> known_backends() {
  std::vector<std::string> names;
  for (const BuiltIn& backend : built_in) names.emplace_back(backend.name);
  std::ranges::copy(find_plugins(), std::back_inserter(names));
  return names;
}

}  // namespace plexaura
