#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/plugin.h"

namespace plexaura {

// Returns the folders that are searched for plugins, in order.
std::vector<std::string> plugin_folders();

// Returns the path of the plugin plexaura_<name>.so, or nothing if no folder has it.
std::optional<std::string> find_plugin(std::string_view name);

// Returns the path of the plugin that describes devices of a backend, plexaura_described/plexaura_<backend>.so in one of
// plugin_folders(), or nothing if there is none.
std::optional<std::string> find_describing_plugin(std::string_view backend);

// Returns the names of all plugins found, sorted.
std::vector<std::string> find_plugins();

// Loads the file, which stays loaded, compares its stamp with that of this build, and opens the backend. Throws
// UserError if the file cannot be loaded, is no plugin or has another stamp, and what the backend throws.
std::unique_ptr<Backend> open_plugin(const std::string& file, const BackendOptions& options);

}  // namespace plexaura
