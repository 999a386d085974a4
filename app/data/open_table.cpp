#include "app/data/open_table.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <set>
#include <span>

#include "app/data/describe_data.h"
#include "app/data/label_column.h"
#include "app/data/prediction_data.h"
#include "app/data/split_data.h"
#include "training/data/tables/categories.h"
#include "training/data/tables/csv.h"
#include "training/data/tables/csv_stream.h"
#include "training/loop/signals.h"

namespace plexaura {

namespace {

void require_columns(const Section& data, const std::filesystem::path& path, const CsvDataset& table,
                     const TrainedData& trained) {
  if (table.feature_names().size() == trained.columns.size()) return;
  throw data.error("path",
                   fmt::format("'{}' has {} columns of features and the weights are of a model that takes "
                               "{}; name a table with those of its training",
                               path.string(), table.feature_names().size(), trained.columns.size()));
}

// Compares the names of targets, or only their count where a table has no names.
bool are_targets_of(const DataOptions& options, const TrainedData& trained) {
  return options.csv.header ? *options.targets == trained.targets
                            : options.targets->size() == trained.targets.size();
}

// Throws if the keys name other columns of words than the training, or ignore a column that the model takes.
void require_same_columns(const Section& data, const DataOptions& options, const TrainedData& trained) {
  const auto as_set = [](const std::vector<std::string>& names) {
    return std::set(names.begin(), names.end());
  };
  if (data.has("categories") && as_set(options.categories) != as_set(trained.categories))
    throw data.error(
        "categories",
        fmt::format("is [{}], and the weights are of a model that was trained with [{}]; give that "
                    "list, or leave the key out",
                    fmt::join(options.categories, ", "), fmt::join(trained.categories, ", ")));
  for (const std::string& column : table_columns(trained.columns, trained.categories))
    if (std::ranges::find(options.ignored, column) != options.ignored.end())
      throw data.error("ignore",
                       fmt::format("names '{}', which the model takes; leave it out of the list", column));
}

// Returns the key of the section `data` that names the column; null if only the weights of a model name it.
const char* key_of(const ColumnRef& column, const CsvOptions& csv) {
  const auto is_in = [&](const std::vector<ColumnRef>& columns) {
    return std::ranges::find(columns, column) != columns.end();
  };
  if (is_in(csv.targets)) return "targets";
  if (is_in(csv.ignored)) return "ignore";
  const bool is_of_words = std::ranges::any_of(
      csv.categories, [&](const CategoryColumn& category) { return column == ColumnRef(category.name); });
  return is_of_words ? "categories" : column == csv.label ? "label" : nullptr;
}

// Adds the place of the key to the error for a column that the table does not have.
std::shared_ptr<const CsvDataset> read_table(const Section& data, const DataOptions& options,
                                             const CsvOptions& csv) {
  try {
    return std::make_shared<CsvDataset>(options.path, csv);
  } catch (const MissingColumn& error) {
    const char* const key = key_of(error.column, options.csv);
    if (key == nullptr || !data.has(key)) throw;
    throw data.error(key, fmt::format("does not fit the table: {}", error.what()));
  }
}

}  // namespace

void require_table(const Section& data, const DataOptions& options, const TrainedData& trained) {
  if (trained.columns.empty())
    throw data.error(
        "format",
        "is csv, and the weights are of a model that was not trained on a table; name weights of "
        "one that was, or the data.format of their training");
  if (options.targets.has_value() == trained.targets.empty())
    throw data.error(
        "targets",
        options.targets
            ? "is given, and the weights are of a classification; name weights of a model that was "
              "trained with targets, or set model.task to classification"
            : "is missing, and the weights are of a model that was trained with targets; name weights "
              "of a classification, or set model.task to that of the training");
  if (options.targets && !are_targets_of(options, trained))
    throw data.error("targets",
                     fmt::format("is [{}], and the weights predict [{}]; name the targets of the weights, in "
                                 "their order",
                                 fmt::join(*options.targets, ", "), fmt::join(trained.targets, ", ")));
  require_same_columns(data, options, trained);
}

void use_columns_of(const TrainedData& trained, CsvOptions& options) {
  options.ignored.clear();
  options.categories = words_of_features(trained.columns, trained.categories);
  if (!options.header) return;
  const std::vector<std::string> columns = table_columns(trained.columns, trained.categories);
  options.features.assign(columns.begin(), columns.end());
}

DataPair open_table(const Section& data, const DataOptions& options, Task task,
                    const std::optional<TrainedData>& trained) {
  if (trained) require_table(data, options, *trained);
  CsvOptions csv = options.csv;
  if (trained) {
    use_columns_of(*trained, csv);
    csv.class_names = trained->classes;
  }
  const auto table = read_table(data, options, csv);
  if (trained)
    require_columns(data, options.path, *table, *trained);
  else if (csv.targets.empty())
    check_label_column(data, *table);
  if (task == Task::multi_label) check_target_labels(data, *table);
  DataPair pair = split_and_scale(data, options,
                                  {.samples = table,
                                   .columns = table->feature_names(),
                                   .targets = table->target_names(),
                                   .categories = trained ? trained->categories : options.categories},
                                  trained);
  pair.origin = fnv(std::as_bytes(std::span(table->values())), pair.origin);
  if (table->dropped() > 0)
    pair.preparation +=
        fmt::format("; without {} that lack a cell", counted(table->dropped(), "row", "rows"));
  pair.read_samples = row_reader(csv, pair.trained, options.standardise);
  return pair;
}

std::shared_ptr<const StreamSource> table_stream(const DataOptions& options, Task task,
                                                 const TrainedData& of_table) {
  CsvStreamOptions rows{.csv = options.csv,
                        .scale = joined(of_table.scale, of_table.target_scale),
                        .targets = std::ssize(of_table.targets),
                        .targets_are_labels = task == Task::multi_label,
                        .is_to_end = [] { return StopSignals::received() != 0; }};
  use_columns_of(of_table, rows.csv);
  rows.csv.class_names = of_table.classes;
  return std::make_shared<CsvStream>(*options.stream.command, std::move(rows));
}

}  // namespace plexaura
