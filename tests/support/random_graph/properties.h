#pragma once

#include <set>
#include <string>

#include "core/device/backend.h"
#include "tests/support/random_graph/random_graph.h"

namespace plexaura::testing {

// The result of the checks of a graph.
struct GraphReport {
  std::string failure;             // empty if nothing is wrong
  int derivatives = 0;             // directions along which a derivative was compared
  int not_comparable = 0;          // directions along which every point is close to a kink
  int limited = 0;                 // programs that were compared with those in their smallest arena
  std::set<std::string> ops = {};  // their names, in the graph with its gradients
};

// Compares what a backend computes of a graph with what the portable kernels compute with every value kept, in both
// floating dtypes: compiled with all passes, without them, and by the portable kernels with all passes. Checks that no plan of
// memory overwrites a value that is still read. Compares derivatives in float64 with differences, of the first order and, if
// `second_order`, of the second.
//
// Results may differ by the rounding that a change of the inputs in their last digits also causes. A difference counts
// if it appears at three points, since rounding decides which side of a jump or kink a value is on.
GraphReport check_random_graph(const Recipe& recipe, bool second_order, Backend& backend, Backend& oracle);

}  // namespace plexaura::testing
