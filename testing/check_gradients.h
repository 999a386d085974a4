#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/compile/step_block.h"
#include "core/device/backend.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// Writes the function under test into a graph: its inputs in, its outputs out.
using BuildFunction = std::function<std::vector<Node>(Graph& graph, std::span<const Node> inputs)>;

// A step block in which every number tells: a gradient that has a factor too many or too few of it is wrong.
inline constexpr StepBlock telling_step_block{.gradient_seed = 1.7,
                                              .share = 0.3,
                                              .samples = 7,
                                              .learning_rate = 0.11,
                                              .step = 5,
                                              .stop = 1.9,
                                              .failed = 2.3,
                                              .loss_scale = 1.3,
                                              .seed = 13,
                                              .first_sample = 17};

struct GradientOptions {
  double step = 1e-3;              // of the differences; inputs must be further than twice that from a kink
  double tolerance = 1e-8;         // of the relative error of first derivatives
  double second_tolerance = 1e-7;  // of second derivatives
  bool second_order = true;
  // Of an input with more elements, so many groups of elements are moved together; all elements take part.
  std::int64_t element_limit = 64;
  // Every entry of the Jacobian is compared where it has no more entries than this.
  std::int64_t jacobian_limit = 400;
  std::int64_t draws = 3;  // random cotangents
  std::uint64_t seed = 1;
  StepBlock block = telling_step_block;  // for functions that read step scalars
};

// One derivative that was found wrong, or an exception that was thrown on the way.
struct GradientEntry {
  std::string check;  // "gradient", "jacobian", "gradient wanted alone", "second gradient", "symmetry", ...
  std::string input;  // "input 1", or "cotangent 0" in second derivatives
  std::string index;  // "[0,2]"; "64 elements" where a group moved
  double analytic = 0;
  double numeric = 0;
  double error = 0;  // relative, beyond what the rounding of the function's values explains
  double limit = 0;
  std::string note = {};  // why: a kink, or what was thrown
};

struct GradientReport {
  bool passed = true;
  std::int64_t compared = 0;       // derivatives in all
  double worst = 0;                // error of first derivatives; infinite where one is not a number
  double worst_second = 0;         // of second derivatives
  std::int64_t not_checkable = 0;  // derivatives whose difference only rounding explains
  double excused = 0;  // what rounding explains there at most, as a fraction of the largest gradient
  std::vector<GradientEntry> failures;  // the first twenty
  std::vector<std::string>
      places;  // where a failure comes from: an op whose own gradient is wrong, and its line
  std::vector<std::string> not_checked;
};

// One line for each element that is wrong: what, where, analytic, numeric, relative error and limit, and a note. Then the
// places, and what was not checked.
std::string to_string(const GradientReport& report);

// Compares the gradients of a function with central differences (of fourth order) in float64.
//
// The gradients by all floating inputs are wanted at once, as in training, under several random cotangents,
// under those of each output alone, and where the Jacobian is small under those of each element. What an
// input is given when only some inputs are wanted (each set of up to four), and what all are given when an output has no
// cotangent, must be the same. Two inputs of one type are also given as one node, at the values of the first. Second
// derivatives are checked likewise where the first are right, as the gradients of these gradients by inputs and
// cotangents, and must be symmetric.
//
// A derivative is wrong where it differs by more than the tolerance, as a fraction of the larger one, and by
// more than rounding explains; finer steps are tried before that is said. What rounding alone explains is counted as not
// checkable. A failure's note tells a function that has a kink at this point, and an exception from a vjp. Where a
// derivative is wrong each op is checked by itself, at the values that it meets, to find the place. The floating inputs
// must be float64; others are held fixed, and a gradient of them is a failure. Saved outputs take no part. The graph is
// one of training; inference mode and other types than float64 are not checked.
GradientReport check_gradients(const BuildFunction& build, const std::vector<Tensor>& inputs,
                               Backend& backend, const GradientOptions& options = {});

}  // namespace plexaura
