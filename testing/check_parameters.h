#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/vm/feed.h"
#include "testing/check_gradients.h"

namespace plexaura {

struct ParameterCheckOptions {
  double tolerance = 1e-6;         // limit of the relative difference of first derivatives
  double second_tolerance = 1e-5;  // limit of the relative difference of second derivatives
  bool second_order = true;
  std::uint64_t seed = 1;                // seed of the random directions
  StepBlock block = telling_step_block;  // the step scalars that the graph reads, such as the seed of dropout
};

// The comparison of one parameter's gradient with differences.
struct ParameterGradient {
  std::string name;
  Shape shape;
  // The relative differences of the first and second derivatives along a random direction; infinite if a
  // derivative is not a number.
  double first = 0;
  double second = 0;
};

struct ParameterReport {
  bool passed = true;
  std::vector<ParameterGradient> parameters;
  // Likely sources of a failure: an op whose own gradient is wrong, and its source line.
  std::vector<std::string> places;
  // The reason why second derivatives were not compared; empty if they were.
  std::string why_no_second;
};

// Compares the gradients of a loss with differences, in float64, for a model with many parameters. Each
// parameter is moved as a whole, along a random direction that leans towards its gradient. Second derivatives
// are compared in the same way, as gradients of the sum of all first derivatives, each times a random number.
// The step of the differences is made smaller, from 1e-4 to 1e-8, until they agree, because a model with
// functions such as relu has kinks in every larger neighbourhood. If a derivative is wrong, each op is
// checked by itself at the values that it receives, to find the op whose gradient is wrong. If no op is,
// second derivatives that differ count as not compared: they jump at kinks.
//
// check_gradients() of a loss compares every element, so it finds smaller mistakes, and takes much longer.
// `values` has the value of each input, parameter and buffer that the loss needs, by name; the floating ones
// are float64. `parameters` are the names of those to check. Throws UserError, with the name, if a value is
// missing, is not needed, or has another type than its leaf.
ParameterReport check_parameters(const Node& loss, const std::vector<Feed>& values,
                                 const std::vector<std::string>& parameters, Backend& backend,
                                 const ParameterCheckOptions& options = {});

}  // namespace plexaura
