#include "app/data/label_column.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>

#include "models/config/yaml_tree.h"
#include "training/data/tables/csv_cells.h"

namespace plexaura {

namespace {

// A label column with fewer different numbers contains classes, however few rows the table has.
constexpr std::int64_t several_classes = 10;

bool is_fraction(const std::string& name) {
  double value = 0;
  return parse_number(name, value) == std::errc{} && value != std::floor(value);
}

bool are_nearly_all_different(const Dataset& samples) {
  const auto classes = std::ssize(samples.class_names());
  return classes >= several_classes && 2 * classes > samples.size();
}

// Whole numbers may be the names of classes with few samples each; fractions are unlikely to be.
bool looks_like_regression(const CsvDataset& table) {
  const std::vector<std::string>& names = table.class_names();
  if (!std::ranges::all_of(names, is_number)) return false;
  const bool has_few_each = 10 * std::ssize(names) > table.size() && std::ssize(names) > 2 * several_classes;
  return are_nearly_all_different(table) || (has_few_each && std::ranges::any_of(names, is_fraction));
}

}  // namespace

void check_label_column(const Section& data, const CsvDataset& table) {
  if (looks_like_regression(table))
    throw data.error(
        "label",
        fmt::format(
            "is the column {0}, which has {1} different numbers in {2} rows: for regression set model.task "
            "to regression and data.targets to [{0}]; for classification name the column of the classes, or, "
            "if these are classes, write them as words",
            quoted_for_error(table.label_name()), table.class_names().size(), table.size()));
}

std::string remedy_for_classes(const Dataset& samples, std::string_view otherwise) {
  if (!are_nearly_all_different(samples)) return std::string(otherwise);
  return fmt::format(
      "there are {} classes: if these are not meant, name the column of the classes in data.label",
      samples.class_names().size());
}

void require_label(float target, const std::function<std::string()>& place) {
  if (target != 0 && target != 1)
    throw UserError(fmt::format(
        "{} has the value {}, and model.task is multi_label; write 1 for a sample with the label and 0 "
        "for one without it, or set model.task to regression",
        place(), target));
}

void check_target_labels(const Section& data, const CsvDataset& table) {
  const std::size_t targets = table.target_names().size();
  const std::size_t width = table.feature_names().size() + targets;
  for (std::size_t i = 0; i < table.values().size(); ++i) {
    if (i % width < width - targets) continue;
    require_label(table.values()[i], [&] {
      const std::string& name = table.target_names()[i % width - (width - targets)];
      const auto row = fmt::format("names the column '{}', which in row {}", name, i / width + 1);
      return std::string(data.error("targets", row).what());
    });
  }
}

}  // namespace plexaura
