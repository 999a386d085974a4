#pragma once

#include <memory>
#include <string>
#include <vector>

#include "testing/op_case.h"

namespace plexaura::testing {

// Makes cases known to the coverage test, and to whatever else walks over all of them. Stands at the top of
// each tests/ops/*_test.cpp.
struct Cases {
  explicit Cases(std::vector<OpCase> given);
  std::vector<OpCase> cases;
};
struct WrongCases {
  explicit WrongCases(std::vector<WrongCase> given);
  std::vector<WrongCase> cases;
};

// All that were made known.
const std::vector<OpCase>& all_cases();
const std::vector<WrongCase>& all_wrong_cases();

// Checks each on the test backend; a failure says which case, what was expected and what came.
void check_all(const Cases& cases);
void check_all(const WrongCases& cases);
// Results of the kernels that the test backend offers besides the first. What it takes only where it was measured to be
// faster is left out on a backend with host memory: there, tests of its own know how far such results may be off.
void check_other_kernels(const Cases& cases);

// The op of a case in the graph that the case builds for a dtype; null where that has none.
std::shared_ptr<const Op> op_in(const OpCase& op_case, DType dtype);

// Another output of the op that made this value.
Node output_of(const Node& node, std::uint32_t output);

}  // namespace plexaura::testing
