#include "models/zoo/multi_label.h"

#include <array>
#include <string>
#include <utility>

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/losses.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// The index of each row of the sums [rows, labels].
enum LabelRow : std::size_t { found_labels, predicted_labels, true_labels, label_row_count };

double ratio(double count, double of) { return of > 0 ? count / of : 0; }

LabelFigures figures_of(double found, double predicted, double actual) {
  return {.precision = ratio(found, predicted),
          .recall = ratio(found, actual),
          .f1 = ratio(2 * found, predicted + actual)};
}

std::vector<std::pair<std::string, double>> f1_of(std::span<const double> totals, double /*samples*/) {
  const std::size_t labels = totals.size() / label_row_count;
  std::array<double, label_row_count> all{};
  for (std::size_t i = 0; i < totals.size(); ++i) all.at(i / labels) += totals[i];
  double mean = 0;
  for (const LabelFigures& label : label_figures(totals)) mean += label.f1 / static_cast<double>(labels);
  return {{"f1_micro", figures_of(all[found_labels], all[predicted_labels], all[true_labels]).f1},
          {"f1_macro", mean}};
}

}  // namespace

std::vector<LabelFigures> label_figures(std::span<const double> totals) {
  const std::size_t labels = totals.size() / label_row_count;
  std::vector<LabelFigures> figures;
  for (std::size_t i = 0; i < labels; ++i)
    figures.push_back(figures_of(totals[found_labels * labels + i], totals[predicted_labels * labels + i],
                                 totals[true_labels * labels + i]));
  return figures;
}

LossOutputs build_multi_label(Operand outputs, Operand targets) {
  const DType dtype = outputs.node().dtype();
  const auto labels = static_cast<double>(outputs.node().shape()[1]);
  const Node predicted = gt(outputs, 0);
  const Node actual = gt(targets, 0.5);
  const Node correct = cast(eq(cast(predicted, dtype), cast(actual, dtype)), dtype);
  // Counts are exact in float64, which mixed precision leaves as it is.
  const Node predicted_count = cast(predicted, DType::float64);
  const Node true_count = cast(actual, DType::float64);
  const auto row = [](const Node& counts) { return sum(counts, {.axes = {0}, .keepdims = true}); };
  return {.loss = binary_cross_entropy_with_logits(outputs, targets) / labels,
          .metrics = {{.name = "accuracy", .sum = sum(correct) / labels},
                      {.name = "exact_match", .sum = sum(min(correct, {.axes = {1}}))}},
          .validation = {
              .sums = concat({row(predicted_count * true_count), row(predicted_count), row(true_count)}, 0),
              .values = f1_of}};
}

}  // namespace plexaura
