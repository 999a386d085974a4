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

// Builds the function under test in `graph`. It receives the function's inputs and returns its outputs.
using BuildFunction = std::function<std::vector<Node>(Graph& graph, std::span<const Node> inputs)>;

// A step block for checks. All its numbers differ from 0 and 1, so that a missing or an additional factor
// changes a gradient.
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
  // The distance by which inputs are moved to compute differences. The inputs must be more than two steps
  // away from a kink.
  double step = 1e-3;
  double tolerance = 1e-8;         // limit of the relative error of first derivatives
  double second_tolerance = 1e-7;  // limit of the relative error of second derivatives
  bool second_order = true;
  // The number of elements of an input up to which each element is moved alone. A larger input is moved in
  // this many groups, which cover all elements.
  std::int64_t element_limit = 64;
  // The number of entries of the Jacobian up to which every entry is compared.
  std::int64_t jacobian_limit = 400;
  std::int64_t draws = 3;  // number of random cotangents
  std::uint64_t seed = 1;
  StepBlock block = telling_step_block;  // values of the step scalars that the function reads
};

// One derivative that is wrong, or one exception that was thrown during the check.
struct GradientEntry {
  // Name of the check: "gradient", "jacobian", "gradient wanted alone", "second gradient", "symmetry", ...
  std::string check;
  std::string input;  // such as "input 1", or "cotangent 0" in second derivatives
  std::string index;  // such as "[0,2]", or "64 elements" if a group of elements was moved
  double analytic = 0;
  double numeric = 0;
  double error = 0;  // relative error, without the part that rounding of the function's values explains
  double limit = 0;
  std::string note = {};  // reason of the error, such as a kink, or the message of an exception
};

struct GradientReport {
  bool passed = true;
  std::int64_t compared = 0;         // number of derivatives that were compared, first and second ones
  std::int64_t compared_second = 0;  // number of the second ones among them
  // The largest relative error of first derivatives, without the part that rounding of the function's values explains: 0
  // if rounding explains all errors, infinite if a derivative is not a number.
  double worst = 0;
  double worst_second = 0;         // the same of second derivatives
  std::int64_t not_checkable = 0;  // number of derivatives whose error is explained by rounding alone
  // The largest error that rounding explains among the derivatives of `not_checkable`, as a fraction of the
  // largest gradient.
  double excused = 0;
  std::vector<GradientEntry> failures;  // the wrong derivatives, at most twenty
  // Likely sources of the failures: an op whose own gradient is wrong, and its source line.
  std::vector<std::string> places;
  std::vector<std::string> not_checked;
};

// Returns a line about the whole check, and one for each wrong element: check, input, element, analytic and numeric
// value, relative error, limit and note. Then follow the places and the things that were not checked.
std::string to_string(const GradientReport& report);

// Compares the gradients of a function with fourth-order central differences in float64.
//
// The gradients with respect to all floating inputs are computed together, as in training, for several random
// cotangents, for cotangents of one output alone, and, if the Jacobian is small, for each of its rows. The
// gradient of an input must not change if only some inputs are differentiated (each subset of up to four
// inputs is tried), or if an output has no cotangent. Pairs of inputs of the same type are also passed as one
// node, with the value of the first. If the first derivatives are right, second derivatives are checked in
// the same way, as gradients of these gradients with respect to inputs and cotangents; they must be
// symmetric.
//
// A derivative is wrong if it differs by more than the tolerance, as a fraction of the larger value, and by
// more than rounding explains. Finer steps are tried before a derivative is reported. An error that rounding
// alone explains counts as not checkable. The note of a failure says if the function has a kink at this point
// or if a vjp threw an exception. After a failure, each op is checked by itself at the values that it
// receives, to find the op whose gradient is wrong.
//
// Floating inputs must be float64, and there must be one. Other inputs are held fixed, and a gradient for one of them is a
// failure.
// Saved outputs are not differentiated. The graph is built for training; inference mode and dtypes other than
// float64 are not checked.
GradientReport check_gradients(const BuildFunction& build, const std::vector<Tensor>& inputs,
                               Backend& backend, const GradientOptions& options = {});

}  // namespace plexaura
