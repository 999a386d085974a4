#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>

#include "core/base/export.h"

namespace plexaura {

// The place where the user wrote a node: a line of C++, or a line and column of YAML; the path of the modules
// around it; and the line that called the outermost module.
struct PLEXAURA_API Origin {
  std::string file;
  std::uint32_t line = 0;    // 0 if the origin is a file without a line
  std::uint32_t column = 0;  // column of a YAML file; 0 for a line of C++
  std::string scope;         // "layer1.0.conv1"; empty outside of modules
  bool is_gradient = false;  // true if gradients() built the node for a node at this place
  // The line that called the outermost module; empty outside of modules, for YAML, and if it is the same line.
  std::optional<std::source_location> caller = {};

  static Origin at(std::source_location where);
};

// Returns the text of an origin: "gradient of net.h:7 (hidden1), called from main.cpp:5".
PLEXAURA_API std::string to_string(const Origin& origin);

}  // namespace plexaura
