#pragma once

#include <memory>
#include <string>
#include <vector>

#include "testing/op_case.h"

namespace plexaura::testing {

// Registers cases for the coverage test and other tests over all cases. Defined at the top of each
// tests/ops/*_test.cpp.
struct Cases {
  explicit Cases(std::vector<OpCase> given);
  std::vector<OpCase> cases;
};
struct WrongCases {
  explicit WrongCases(std::vector<WrongCase> given);
  std::vector<WrongCase> cases;
};

// Return all registered cases.
const std::vector<OpCase>& all_cases();
const std::vector<WrongCase>& all_wrong_cases();

// Check each case on the test backend. A failure names the case, the expected and the actual result.
void check_all(const Cases& cases);
void check_all(const WrongCases& cases);
// Checks results of the kernels that the test backend offers besides the first. On a backend with host
// memory, leaves out kernels that are only chosen by measurement, because special tests know their larger
// errors.
void check_other_kernels(const Cases& cases);

// Returns the op of a case in the graph that it builds for this dtype, or null if it has none.
std::shared_ptr<const Op> op_in(const OpCase& op_case, DType dtype);

// Returns another output of the op that computes this value.
Node output_of(const Node& node, std::uint32_t output);

}  // namespace plexaura::testing
