#pragma once

#include <map>
#include <string>
#include <vector>

namespace plexaura {

// Pack several texts with any content into one, and unpack them. unpack() throws DeviceError for a text that
// pack() cannot have made.
std::string pack(const std::vector<std::string>& texts);
std::vector<std::string> unpack(const std::string& packed);

// Pack and unpack texts with names. unpack_facts() also throws DeviceError if a name has no text.
std::string pack_facts(const std::map<std::string, std::string>& facts);
std::map<std::string, std::string> unpack_facts(const std::string& packed);

}  // namespace plexaura
