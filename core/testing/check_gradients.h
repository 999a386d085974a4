#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/device/backend.h"
#include "core/export.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"
#include "core/vm/step_block.h"

namespace plexaura {

// Writes the function under test into a graph: its inputs in, its outputs out.
using BuildFunction = std::function<std::vector<Node>(Graph& graph, std::span<const Node> inputs)>;

struct GradientOptions {
  double step = 1e-3;              // of the differences; inputs must be further than twice that from a kink
  double tolerance = 1e-6;         // of the relative error of first derivatives
  double second_tolerance = 1e-5;  // of second derivatives
  bool second_order = true;
  std::int64_t element_limit = 128;  // of an input with more elements so many are compared, chosen at random
  std::int64_t jacobian_limit =
      400;  // every entry of the Jacobian is compared where it has no more entries than this
  std::uint64_t seed = 1;
  StepBlock block = {};  // for functions that read step scalars
};

// One derivative that was compared with differences.
struct GradientEntry {
  std::string check;  // "gradient", "direction", "jacobian", "second", "second direction"
  std::string input;  // "input 1", or "cotangent 0" in second derivatives
  std::string index;  // "[0,2]"; empty for a direction
  double analytic = 0;
  double numeric = 0;
  double error = 0;  // relative
  double limit = 0;
};

struct GradientReport {
  bool passed = true;
  std::int64_t compared = 0;            // derivatives in all
  double worst = 0;                     // relative error of first derivatives
  double worst_second = 0;              // of second derivatives
  std::vector<GradientEntry> failures;  // the first twenty
};

// One line a failure: what, where, analytic, numeric, relative error and limit.
PLEXAURA_API std::string to_string(const GradientReport& report);

// Compares the gradients of a function with central differences (of fourth order) in float64: along a random
// direction, for every element under a random cotangent, for every entry of the Jacobian where it is small;
// and likewise the derivative of the gradient along a random direction with respect to inputs and cotangents.
// The floating inputs must be float64; others are held fixed. Saved outputs take no part. The relative error
// is |analytic - numeric| over the largest of the two and a thousandth of the largest derivative by the same
// input.
PLEXAURA_API GradientReport check_gradients(const BuildFunction& build, const std::vector<Tensor>& inputs,
                                            Backend& backend, const GradientOptions& options = {});

}  // namespace plexaura
