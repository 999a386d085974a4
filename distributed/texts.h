#pragma once

#include <string>
#include <vector>

namespace plexaura {

// Several texts of any content as one, and back again.
std::string pack(const std::vector<std::string>& texts);
std::vector<std::string> unpack(const std::string& packed);

}  // namespace plexaura
