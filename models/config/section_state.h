#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/config/config.h"

namespace plexaura {

// The state of a section: its contents in the file, and the keys that were read. Only for the sources of
// models/config.
struct Section::State {
  // A key that was read. It holds the key's value as YAML on one line, or the sections in it.
  struct Read {
    std::string value;
    std::vector<std::shared_ptr<State>> sections;
    enum class Kind { value, section, list_of_sections } kind = Kind::value;
  };

  std::shared_ptr<const YamlValue> written;  // the section's contents in the file: a map, or empty
  YamlPosition position;
  std::string path;
  std::map<std::string, Read, std::less<>> read;
  std::set<std::string, std::less<>> asked;  // all keys that were read or looked up

  const YamlMember* find(std::string_view key) const { return written->find(key); }
  std::string path_of(std::string_view key) const {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }
};

}  // namespace plexaura
