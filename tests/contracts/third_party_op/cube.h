#pragma once

#include "core/graph/node.h"

namespace third_party {

struct CubeOptions {
  double offset = 0;

  static void fields(auto& self, auto& visitor) { visitor("offset", self.offset); }
};

}  // namespace third_party

// Appends the node y = x^3 + offset to the graph of `x`. dlsym finds the function by this name.
extern "C" __attribute__((visibility("default"))) void third_party_cube(const plexaura::Node& x,
                                                                        double offset, plexaura::Node& y);
