#pragma once

#include <cstdint>
#include <vector>

#include "testing/run.h"

namespace plexaura::testing {

// The change of one element of one input when the step grows by 1.
struct Move {
  std::size_t input = 0;
  std::size_t element = 0;
  double amount = 1;
};
using Direction = std::vector<Move>;

// The derivatives of all elements of a function's outputs along a direction, the outputs one after another:
// `central` from fourth-order central differences, `below` and `above` from second-order one-sided
// differences.
struct Slopes {
  std::vector<double> central;
  std::vector<double> below;
  std::vector<double> above;
};

// Computes differences of a function around the point `at`. The runner must outlive this object.
class Differences {
 public:
  Differences(Runner& runner, std::vector<Tensor> at, const StepBlock& block);

  Slopes along(const Direction& direction, double step);
  // Returns how much rounding of the function's values may change the central difference of sum(weights *
  // outputs).
  double rounding(const std::vector<double>& weights, double step) const;

 private:
  std::vector<double> value_at(const Direction& direction, double distance);

  Runner& runner_;
  std::vector<Tensor> at_;
  StepBlock block_;
  std::vector<double> value_;
  std::vector<double> size_;  // for each output element, the largest magnitude in its output
};

}  // namespace plexaura::testing
