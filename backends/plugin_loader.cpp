#include "backends/plugin_loader.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

namespace {

constexpr std::string_view prefix = "plexaura_";
constexpr std::string_view suffix = ".so";

void* load(const std::string& file) {
  void* object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object != nullptr) return object;
  const std::string why = dlerror();
  const bool lacks_a_library = why.find("cannot open shared object file") != std::string::npos;
  throw UserError(
      fmt::format("the plugin {} cannot be loaded: {}{}", file, why,
                  lacks_a_library ? "; install that library, or name its folder in LD_LIBRARY_PATH" : ""));
}

const PluginEntry& entry_of(const std::string& file) {
  void* symbol = dlsym(load(file), plugin_entry_name);
  const auto entry = reinterpret_cast<const PluginEntry* (*)()>(symbol);
  if (entry == nullptr || entry() == nullptr)
    throw UserError(
        fmt::format("{} is not a plugin of Plexaura: it exports no {}; build it with PLEXAURA_PLUGIN", file,
                    plugin_entry_name));
  return *entry();
}

std::optional<std::string> find_below(const char* subfolder, std::string_view name) {
  for (const std::string& folder : plugin_folders()) {
    const auto file = std::filesystem::path(folder) / subfolder / fmt::format("{}{}{}", prefix, name, suffix);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) return file.string();
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> plugin_folders() {
  std::vector<std::string> folders{core_library_folder()};
  const char* path = std::getenv("PLEXAURA_PLUGIN_PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

std::optional<std::string> find_plugin(std::string_view name) { return find_below("", name); }

std::optional<std::string> find_describing_plugin(std::string_view backend) {
  return find_below("plexaura_described", backend);
}

std::vector<std::string> find_plugins() {
  std::vector<std::string> names;
  for (const std::string& folder : plugin_folders()) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string file = entry.path().filename().string();
      if (file.size() <= prefix.size() + suffix.size() || !file.starts_with(prefix) ||
          !file.ends_with(suffix) || !entry.is_regular_file(ignored))
        continue;
      names.push_back(file.substr(prefix.size(), file.size() - prefix.size() - suffix.size()));
    }
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

std::unique_ptr<Backend> open_plugin(const std::string& file, const BackendOptions& options) {
  const PluginEntry& entry = entry_of(file);
  if (std::string_view(entry.stamp) != plugin_stamp)
    throw UserError(fmt::format(
        "the plugin {} was built for another Plexaura (it: {}; here: {}); build both from the same "
        "sources with the same compiler",
        file, entry.stamp, plugin_stamp));
  return std::unique_ptr<Backend>(entry.open(options));
}

}  // namespace plexaura
