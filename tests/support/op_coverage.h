#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "testing/op_case.h"

namespace plexaura::testing {

using InputDType = std::pair<std::size_t, DType>;  // the place of an input, and its dtype

// The properties of one op that cases cover.
struct OpCoverage {
  int cases = 0;
  std::map<std::string, std::set<std::string>> options = {};  // the texts of the values of each option
  std::set<InputDType> used = {};
  std::set<InputDType> accepted = {};  // by the shape rule
  bool has_one = false;                // an input or output has an axis of extent 1
  bool has_none = false;               // an input or output has an axis of extent 0
  bool first_order = false;            // a case has a gradient that is compared with differences
  bool second_order = false;
};

using CoverageOfOps = std::map<std::string, OpCoverage, std::less<>>;

// Adds the ops in the graph of the case, and in those of its gradients, which count in float64. Throws UserError if the
// case cannot be built.
void add_case(CoverageOfOps& to, const OpCase& op_case);

}  // namespace plexaura::testing
