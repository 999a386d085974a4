#include "app/data/table_keys.h"

#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "models/config/yaml_tree.h"

namespace plexaura {

namespace {

// Reads the label's column number: without a header, columns have no names.
std::int64_t label_number(const Section& data, const std::string& text) {
  if (text.find_first_not_of("+-0123456789") == std::string::npos) return data.integer("label");
  throw data.error("label", fmt::format("is '{}' and with data.header=false the columns have no names; give "
                                        "its number from 0, or leave out data.header",
                                        text));
}

// Returns the columns of data.targets: their names, or, without a header, their numbers.
std::vector<ColumnRef> target_columns(const Section& data, const DataOptions& options) {
  std::vector<ColumnRef> columns;
  for (const std::string& text : *options.targets) {
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    const bool is_number = read.ec == std::errc{} && read.ptr == end;
    if (options.csv.header)
      columns.emplace_back(text);
    else if (is_number)
      columns.emplace_back(number);
    else
      throw data.error("targets",
                       fmt::format("names '{}' and with data.header=false the columns have no names; give "
                                   "numbers from 0, or leave out data.header",
                                   text));
  }
  return columns;
}

// Throws if a column is named twice.
void check_names(const Section& data, const DataOptions& options) {
  std::set<std::string> seen;
  for (const auto& [key, names] :
       {std::pair("categories", &options.categories), {"ignore", &options.ignored}})
    for (const std::string& name : *names)
      if (!seen.insert(name).second)
        throw data.error(key, fmt::format("names {}, which data.categories and data.ignore name twice; name "
                                          "each column once, in one of them",
                                          quoted_for_error(name)));
}

// Checks the command, requires a key for the labels, and refuses keys about reading samples, which a stream ignores.
void check_keys_of_stream(const Section& data, const DataOptions& options) {
  if (options.stream.command->empty())
    throw data.error("stream", "is empty; give a command that prints rows, or remove the key");
  if (options.stream.command->find("{ranks}") != std::string::npos &&
      options.stream.command->find("{rank}") == std::string::npos)
    throw data.error("stream",
                     "has {ranks} and no {rank}, so that all ranks would run the same command and read the "
                     "same rows; use {rank}, too, or write the number itself");
  // The last column of the stream may be another one than the last column of the table.
  if (!options.label && !options.targets)
    throw data.error("stream", "is given, so that data.label must name the column of the labels");
  data.refuse({"use_fraction", "limit", "sampling", "shuffle", "workers", "prefetch", "on_error"},
              "data.stream is given, whose rows are read between the steps, in its own order");
}

}  // namespace

std::vector<Key> table_keys(DataOptions& options) {
  constexpr double largest_missing = 1e30;  // float32 holds it
  return {
      {.name = "header",
       .into = &options.csv.header,
       .meaning = "whether the first line names the columns; a first line whose features are all numbers is "
                  "an error unless this key is given"},
      {.name = "delimiter",
       .into = &options.delimiter,
       .meaning = "the character between cells: `\";\"`, or `\"\\t\"` for a tab"},
      {.name = "label",
       .into = &options.label,
       .rule = "the name of one column, or its number if there is no header",
       .meaning =
           "the label column: its name, or, without a header, its number from 0 (negative numbers count from "
           "the end); by default the last column. Where another one is called `label`, `class` or `target`, "
           "the key must be given. Numbers that are nearly all different are an error: that would be "
           "regression"},
      {.name = "targets",
       .into = &options.targets,
       .meaning =
           "with `model.task: regression` or `multi_label`, which need them: the columns of the numbers, "
           "or of the labels, 0 or 1, to predict, by name, or, "
           "without a header, by number as in `label`; all others are inputs"},
      {.name = "categories",
       .into = &options.categories,
       .needs = {.key = "header", .values = {"true"}},
       .meaning = "the names of columns of words. Each word of the table becomes an input, which is 1 in the "
                  "rows that have it and 0 in all others, and is not scaled. The words are kept with the "
                  "weights, and another word in "
                  "a table to evaluate or predict is an error"},
      {.name = "ignore",
       .into = &options.ignored,
       .needs = {.key = "header", .values = {"true"}},
       .meaning = "the names of columns that are not read"},
      {.name = "standardise_targets",
       .into = &options.standardise_targets,
       .needs = {.key = "targets"},
       .meaning = "with `model.task: regression`, trains on (target − mean) / standard deviation, both taken "
                  "over the training rows. The loss is "
                  "then one of such numbers; errors and predictions are in the unit of the column"},
      {.name = "missing",
       .into = one_of(options.csv.missing, {{"error", MissingCells::error},
                                            {"drop", MissingCells::drop},
                                            {"mean", MissingCells::mean},
                                            {"value", MissingCells::value}}),
       .needs = {.key = "format", .values = {"csv"}},
       .meaning =
           "what is done about a cell that is empty or contains a word such as `NA`, `nan` or `?`: it is an "
           "error; `drop` leaves out its row; `mean` replaces it by the mean of its column over the training "
           "rows, which is kept with the weights; `value` by `missing_value`. Missing targets and labels are "
           "errors, unless `drop` leaves out their rows. A missing word (`categories`) is 0 in all inputs of "
           "its column with `mean` and `value`"},
      {.name = "missing_value",
       .into = &options.csv.missing_value,
       .range = {.minimum = -largest_missing, .maximum = largest_missing},
       .needs = {.key = "missing", .values = {"value"}},
       .meaning = "the number that replaces missing cells, before columns are scaled"},
      {.name = "missing_is_class",
       .into = &options.csv.missing_is_class,
       .meaning = "whether a label such as `NA`, `nan`, `None`, `null`, `?` or `#N/A` names a class; "
                  "otherwise it is an error, since programs write it for a missing label"},
      {.name = "stream",
       .into = &options.stream.command,
       .meaning =
           "a command of the shell that prints the rows to train on "
           "([a stream of rows](../guide/own_data.md#a-stream-of-rows)); the table `path` then gives the "
           "classes, the words, the scale of the columns and the rows for validation. With `{rank}` in the "
           "command each rank prints rows of its own"},
      {.name = "steps_per_epoch",
       .into = &options.stream.steps_per_epoch,
       .range = {.minimum = 1, .maximum = 1'000'000'000},
       .required = true,
       .needs = {.key = "stream"},
       .meaning = "number of steps of an epoch, because the number of rows is not known"},
      {.name = "shuffle_buffer",
       .into = &options.stream.shuffle_buffer,
       .range = {.minimum = 1, .maximum = 1'000'000'000},
       .needs = {.key = "stream"},
       .meaning =
           "each row is drawn at random, by `training.seed`, from so many that come next, which are in "
           "memory; 1: the order of the stream"},
  };
}

void complete_table(const Section& data, DataOptions& options) {
  if (options.csv.missing == MissingCells::mean && !options.standardise)
    throw data.error("missing",
                     "is mean, and data.standardise is false; the means are measured when columns are "
                     "scaled, so set it to true, or give data.missing_value");
  if (options.delimiter.size() != 1 || options.delimiter == "\"" || options.delimiter == "\n")
    throw data.error("delimiter", R"(must be one character, for example ";" or "\t" for a tab)");
  options.csv.delimiter = options.delimiter.front();
  options.csv.names_may_be_numbers = data.has("header");
  options.csv.label_is_assumed = !options.label;
  if (options.targets) options.csv.targets = target_columns(data, options);
  for (const std::string& name : options.categories) options.csv.categories.push_back({name});
  check_names(data, options);
  if (options.stream.command) check_keys_of_stream(data, options);
  options.csv.ignored.assign(options.ignored.begin(), options.ignored.end());
  if (!options.label) return;
  if (options.csv.header)
    options.csv.label = *options.label;
  else
    options.csv.label = label_number(data, *options.label);
}

}  // namespace plexaura
