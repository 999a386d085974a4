#pragma once

#include <map>
#include <string>
#include <vector>

namespace plexaura {

// Several texts of any content as one, and back again. unpack() throws DeviceError where the text is not one that pack() makes.
std::string pack(const std::vector<std::string>& texts);
std::vector<std::string> unpack(const std::string& packed);

// Likewise for texts with names. unpack_facts() also throws DeviceError where a name lacks its text.
std::string pack_facts(const std::map<std::string, std::string>& facts);
std::map<std::string, std::string> unpack_facts(const std::string& packed);

}  // namespace plexaura
