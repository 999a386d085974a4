#pragma once

#include <span>
#include <vector>

#include "models/zoo/model.h"

namespace plexaura {

// The errors of a regression for one target, in the unit of the target.
struct TargetFigures {
  double mae = 0;   // mean absolute error
  double rmse = 0;  // root of the mean squared error
  double r2 =
      0;  // 1 - squared errors / squared differences from the mean; NaN if the target is the same in all samples
};

// Returns the mean over all elements of an error of the outputs: the absolute error for Loss::l1, the Huber
// loss for Loss::huber, and the squared error otherwise. Outputs and targets have the same shape.
Node regression_loss(Loss kind, Operand outputs, Operand targets);

// Returns the loss of a regression. In validation it reports "mae" and "r2" as means over the targets, and
// "rmse", the root of the mean squared error over all targets.
//   outputs and targets [N, targets], floating.
LossOutputs build_regression(const Model& model, Operand outputs, Operand targets);

// Computes the figures of each target from the totals of the ValidationSums of build_regression().
//   target_units: see ModelInfo.
std::vector<TargetFigures> target_figures(std::span<const double> totals, double samples,
                                          std::span<const double> target_units);

}  // namespace plexaura
