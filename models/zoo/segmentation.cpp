#include "models/zoo/segmentation.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/ops/binary.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// Returns the number of classes, given sums with (classes + 1) * classes elements.
std::size_t classes_of(std::span<const double> totals) {
  return static_cast<std::size_t>(std::sqrt(static_cast<double>(totals.size())));
}

std::vector<std::pair<std::string, double>> pixel_figures(std::span<const double> totals,
                                                          std::optional<std::int64_t> ignored) {
  const std::size_t classes = classes_of(totals);
  double correct = 0;
  double pixels = 0;
  for (std::size_t i = 0; i < classes * classes; ++i) pixels += totals[i];
  for (std::size_t i = 0; i < classes; ++i) correct += totals[i * classes + i];
  double sum = 0;
  double present = 0;
  for (const double iou : class_ious(totals, ignored)) {
    if (std::isnan(iou)) continue;
    sum += iou;
    ++present;
  }
  return {{"pixel_accuracy", correct / pixels}, {"mean_iou", sum / present}};
}

}  // namespace

PixelRows pixel_rows(const Node& outputs, const Node& targets) {
  const std::int64_t classes = outputs.shape()[1];
  return {reshape(permute(outputs, {0, 2, 3, 1}), {-1, classes}), reshape(cast(targets, DType::int64), {-1})};
}

ValidationSums segmentation_sums(const PixelRows& pixels, std::optional<std::int64_t> ignored) {
  const std::int64_t classes = pixels.logits.shape()[1];
  const Node rows = ignored ? where(eq(pixels.labels, *ignored), classes, pixels.labels) : pixels.labels;
  const Node none =
      pixels.logits.graph().constant(Tensor(TensorType{DType::float64, {(classes + 1) * classes}}));
  return {.sums = scatter_add(none, rows * classes + argmax(pixels.logits, 1), 1.0, 0),
          .values = [ignored](std::span<const double> totals, double /*samples*/) {
            return pixel_figures(totals, ignored);
          }};
}

std::vector<double> class_ious(std::span<const double> totals, std::optional<std::int64_t> ignored) {
  const std::size_t classes = classes_of(totals);
  std::vector<double> ious;
  for (std::size_t i = 0; i < classes; ++i) {
    double either = -totals[i * classes + i];
    for (std::size_t j = 0; j < classes; ++j) either += totals[i * classes + j] + totals[j * classes + i];
    const bool counts = either > 0 && ignored != static_cast<std::int64_t>(i);
    ious.push_back(counts ? totals[i * classes + i] / either : std::numeric_limits<double>::quiet_NaN());
  }
  return ious;
}

}  // namespace plexaura
