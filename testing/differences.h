#pragma once

#include <cstdint>
#include <vector>

#include "testing/run.h"

namespace plexaura::testing {

// How far one element of one input moves for each unit of a step.
struct Move {
  std::size_t input = 0;
  std::size_t element = 0;
  double amount = 1;
};
using Direction = std::vector<Move>;

// The derivatives of all elements of a function's outputs, one output behind the other, along a direction: by
// differences of both sides (of fourth order), and of one side each (of second order).
struct Slopes {
  std::vector<double> central;
  std::vector<double> below;
  std::vector<double> above;
};

// Differences of a function around the point `at`. The runner must outlive this.
class Differences {
 public:
  Differences(Runner& runner, std::vector<Tensor> at, const StepBlock& block);

  Slopes along(const Direction& direction, double step);
  // How far the rounding of the function's values may put the central difference of sum(weights * outputs)
  // off.
  double rounding(const std::vector<double>& weights, double step) const;

 private:
  std::vector<double> value_at(const Direction& direction, double distance);

  Runner& runner_;
  std::vector<Tensor> at_;
  StepBlock block_;
  std::vector<double> value_;
  std::vector<double> size_;  // of each element: the largest element of its output
};

}  // namespace plexaura::testing
