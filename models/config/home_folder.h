#pragma once

#include <filesystem>
#include <string>

namespace plexaura {

// Replaces "~" at the beginning of the path by the user's home folder, which is in the variable HOME. In YAML
// and in --set no shell replaces it. Throws UserError, without a position, for other parts that a shell would
// replace, "~name" and variables such as "$HOME", unless a file or folder with that name exists; also if HOME is not
// set.
std::filesystem::path expand_home(const std::string& path);

}  // namespace plexaura
