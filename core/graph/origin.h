#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>

#include "core/base/export.h"

namespace plexaura {

// Where the user wrote a node: a line of C++ or a line and column of YAML, the path of the modules around it, and the
// line that called the outermost of them.
struct PLEXAURA_API Origin {
  std::string file;
  std::uint32_t line = 0;    // 0 where the file alone names the place
  std::uint32_t column = 0;  // 0 where the place is a line of C++
  std::string scope;         // "layer1.0.conv1"; empty at the top
  bool is_gradient = false;  // made by the gradient walk for a node that was written there
  std::optional<std::source_location> caller = {};  // where it is another line

  static Origin at(std::source_location where);
};

// "gradient of net.h:7 (hidden1), called from main.cpp:5"
PLEXAURA_API std::string to_string(const Origin& origin);

}  // namespace plexaura
