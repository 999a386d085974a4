#include "models/zoo/regression.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/element_losses.h"
#include "core/ops/losses.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// The index of each row of the sums [rows, targets].
enum Row : std::size_t { absolute_errors, squared_errors, targets_sum, squared_targets, row_count };

// Returns the sums over a batch. Adds up in float64, so that the division into batches changes only the last
// digits of float64.
Node sums_of(Operand outputs, Operand targets) {
  const Node target = cast(targets, DType::float64);
  const Node error = cast(outputs, DType::float64) - target;
  const auto row = [](const Node& values) { return sum(values, {.axes = {0}, .keepdims = true}); };
  return concat({row(abs(error)), row(square(error)), row(target), row(square(target))}, 0);
}

double r2_of(double errors, double sum, double squares, double samples) {
  constexpr double rounding = 1e-13;
  const double spread = squares - sum * sum / samples;
  return spread > rounding * squares ? 1 - errors / spread : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Node regression_loss(Loss kind, Operand outputs, Operand targets) {
  if (kind == Loss::l1) return l1(outputs, targets);
  return kind == Loss::huber ? huber(outputs, targets) : mse(outputs, targets);
}

std::vector<TargetFigures> target_figures(std::span<const double> totals, double samples,
                                          std::span<const double> target_units) {
  const std::size_t targets = totals.size() / row_count;
  std::vector<TargetFigures> figures;
  for (std::size_t i = 0; i < targets; ++i) {
    const auto total = [&](Row row) { return totals[row * targets + i]; };
    const double unit = target_units.empty() ? 1 : target_units[i];
    figures.push_back(
        {.mae = unit * total(absolute_errors) / samples,
         .rmse = unit * std::sqrt(total(squared_errors) / samples),
         .r2 = r2_of(total(squared_errors), total(targets_sum), total(squared_targets), samples)});
  }
  return figures;
}

LossOutputs build_regression(const Model& model, Operand outputs, Operand targets) {
  const auto values = [units = model.info().target_units](std::span<const double> totals, double samples) {
    TargetFigures mean;
    double squares = 0;
    const std::vector<TargetFigures> figures = target_figures(totals, samples, units);
    const auto count = static_cast<double>(figures.size());
    for (const TargetFigures& target : figures) {
      mean.mae += target.mae / count;
      mean.r2 += target.r2 / count;
      squares += target.rmse * target.rmse / count;
    }
    return std::vector<std::pair<std::string, double>>{
        {"mae", mean.mae}, {"rmse", std::sqrt(squares)}, {"r2", mean.r2}};
  };
  return {.loss = regression_loss(model.info().loss, outputs, targets),
          .validation = {.sums = sums_of(outputs, targets), .values = values}};
}

}  // namespace plexaura
