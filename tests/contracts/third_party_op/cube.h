#pragma once

#include "core/graph/node.h"

// What the object shows, under names that dlsym finds.
extern "C" {
__attribute__((visibility("default"))) void third_party_register();
// y = x^3 + offset, appended to the graph of `x`.
__attribute__((visibility("default"))) void third_party_cube(const plexaura::Node& x, double offset,
                                                             plexaura::Node& y);
}
