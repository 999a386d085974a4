#pragma once

#include <filesystem>
#include <string>

namespace plexaura {

// The path with the home folder of the user, as the variable HOME has it, in place of "~" at its beginning: programs get
// that from YAML and from --set, where no shell replaces it. Throws UserError, without a place, for what a shell would
// have replaced otherwise, unless a file or folder of that name is there: "~name", and variables such as "$HOME".
std::filesystem::path expand_home(const std::string& path);

}  // namespace plexaura
