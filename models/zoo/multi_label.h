#pragma once

#include <span>
#include <vector>

#include "models/zoo/model.h"

namespace plexaura {

// The quality of the predictions of one label. A ratio whose divisor is 0 is 0.
struct LabelFigures {
  double precision = 0;  // share of the samples for which the label is predicted that have it
  double recall = 0;     // share of the samples with the label for which it is predicted
  double f1 = 0;         // 2 * precision * recall / (precision + recall)
};

// Returns the loss of a model that predicts any number of labels: the cross-entropy of the sigmoid of each
// output, as a mean over samples and labels, as torch.nn.BCEWithLogitsLoss. A label is predicted if its
// output is above 0, that is, its probability above 1/2. Metrics: "accuracy", the share of labels that are
// predicted correctly, and "exact_match", the share of samples for which all labels are predicted correctly.
// Validation also reports "f1_micro", the F1 of all labels together, and "f1_macro", the mean of the labels'
// F1.
//   outputs and targets [N, labels], floating; the targets are 0 or 1.
LossOutputs build_multi_label(Operand outputs, Operand targets);

// Computes the figures of each label from the totals of the ValidationSums of build_multi_label().
std::vector<LabelFigures> label_figures(std::span<const double> totals);

}  // namespace plexaura
