#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/plugin.h"

namespace plexaura {

// The folders where plugins are looked for, in order.
std::vector<std::string> plugin_folders();

// The file of a plugin, where there is one.
std::optional<std::string> find_plugin(std::string_view name);

// The file of a plugin that describes a device for a backend, where there is one: plexaura_described/plexaura_<backend>.so
// in the same folders.
std::optional<std::string> find_describing_plugin(std::string_view backend);

// The names of all plugins found.
std::vector<std::string> find_plugins();

// Loads the file (which stays loaded), compares stamps and opens the backend. Throws UserError.
std::unique_ptr<Backend> open_plugin(const std::string& file, const BackendOptions& options);

}  // namespace plexaura
