#include "app/use/confusion.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/base/print.h"
#include "core/ops/labels.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "training/data/tables/csv_cells.h"

namespace plexaura {

namespace {

constexpr std::string_view corner = "true \\ predicted";

std::string cell_of(double count) { return fmt::format("{}", std::llround(count)); }

std::string joined_columns(const std::vector<std::vector<std::string>>& columns) {
  std::vector<std::string> lines(columns[0].size());
  for (const auto& column : columns) {
    const std::size_t width = std::ranges::max(column, {}, &std::string::size).size();
    const bool is_first = &column == columns.data();
    for (std::size_t row = 0; row < lines.size(); ++row)
      lines[row] +=
          is_first ? fmt::format("{:<{}}", column[row], width) : fmt::format("  {:>{}}", column[row], width);
  }
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

}  // namespace

ModelBuilder builder_with_confusion(const Model& model) {
  return [&model](const ModelInputs& inputs) {
    const Node outputs = model(inputs["samples"]);
    const Node labels = inputs["labels"];
    LossOutputs made = build_loss(model, outputs, labels);
    // Float64 holds every count exactly, and mixed precision does not change it.
    const Node truth = one_hot(labels, model.classes(), DType::float64);
    const Node predicted = one_hot(argmax(outputs, 1), model.classes(), DType::float64);
    made.validation.sums = matmul(truth, predicted, {.transpose_a = true});
    return made;
  };
}

std::string confusion_text(std::span<const double> counts, const std::vector<std::string>& classes) {
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(printable(shortened(name)));
  // The cells of each column. The first cell is the column's head.
  std::vector<std::vector<std::string>> columns{{std::string(corner)}};
  columns[0].insert(columns[0].end(), names.begin(), names.end());
  for (std::size_t column = 0; column < names.size(); ++column) {
    columns.push_back({names[column]});
    for (std::size_t row = 0; row < names.size(); ++row)
      columns.back().push_back(cell_of(counts[row * names.size() + column]));
  }
  return joined_columns(columns);
}

}  // namespace plexaura
