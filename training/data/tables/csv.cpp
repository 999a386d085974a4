#include "training/data/tables/csv.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "training/data/tables/csv_cells.h"
#include "training/data/tables/csv_header.h"
#include "training/data/tables/csv_numbers.h"
#include "training/data/tables/csv_text.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

constexpr std::size_t no_column = std::numeric_limits<std::size_t>::max();

// The columns of a file, found by name or number.
class Columns {
 public:
  Columns(std::string file, const CsvRow& first, bool header) : file_(std::move(file)) {
    for (std::size_t i = 0; i < first.size(); ++i)
      names_.push_back(header ? first[i].text : fmt::format("column {}", i));
  }

  std::size_t size() const { return names_.size(); }
  const std::string& name(std::size_t column) const { return names_[column]; }

  std::size_t find(const ColumnRef& wanted) const {
    const auto* name = std::get_if<std::string>(&wanted);
    return name != nullptr ? find_name(*name) : find_number(std::get<std::int64_t>(wanted));
  }

 private:
  std::size_t find_name(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end())
      throw MissingColumn(
          fmt::format("{}: no column is called '{}'; the columns are: {}{}", file_, name, list_of(names_),
                      std::ranges::any_of(names_, is_number)
                          ? "; if the first line is a sample, set data.header to false"
                          : ""),
          name);
    return static_cast<std::size_t>(found - names_.begin());
  }

  std::size_t find_number(std::int64_t number) const {
    const auto count = static_cast<std::int64_t>(names_.size());
    if (number < -count || number >= count)
      throw MissingColumn(
          fmt::format("{}: column {} does not exist; the columns are numbered from 0 to {} (or {} to -1)",
                      file_, number, count - 1, -count),
          number);
    return static_cast<std::size_t>(number < 0 ? number + count : number);
  }

  std::string file_;
  std::vector<std::string> names_;
};

std::vector<std::size_t> find_all(const Columns& columns, const std::vector<ColumnRef>& wanted) {
  std::vector<std::size_t> found;
  for (const ColumnRef& column : wanted) found.push_back(columns.find(column));
  return found;
}

std::vector<std::size_t> feature_columns(const Columns& columns, const CsvOptions& options, std::size_t label,
                                         const std::vector<std::size_t>& targets) {
  if (!options.features.empty()) return find_all(columns, options.features);
  const std::vector<std::size_t> ignored = find_all(columns, options.ignored);
  std::vector<std::size_t> chosen;
  for (std::size_t column = 0; column < columns.size(); ++column)
    if (column != label && std::ranges::find(targets, column) == targets.end() &&
        std::ranges::find(ignored, column) == ignored.end())
      chosen.push_back(column);
  return chosen;
}

void check_ignored(const std::string& file, const Columns& columns, const CsvOptions& options,
                   std::size_t label, const std::vector<std::size_t>& targets) {
  for (const std::size_t column : find_all(columns, options.ignored))
    if (column == label || std::ranges::find(targets, column) != targets.end())
      throw UserError(fmt::format("{}: {} is ignored, and it is {}; name it as one of both", file,
                                  shortened(columns.name(column)),
                                  column == label ? "the label" : "a target"));
}

// Returns the number of the column of words that each feature is, or nothing for numbers.
std::vector<std::optional<WordNumbers>> words_of(const std::string& file, const Columns& columns,
                                                 const std::vector<std::size_t>& features,
                                                 const std::vector<CategoryColumn>& categories) {
  std::vector<std::optional<WordNumbers>> words(features.size());
  std::vector<std::string> names;
  for (const CategoryColumn& category : categories) {
    const std::size_t column = columns.find(category.name);
    const auto feature = std::ranges::find(features, column);
    if (feature == features.end())
      throw UserError(
          fmt::format("{}: the column of words {} is the label, a target or ignored; words are "
                      "features, so name it as one of them",
                      file, shortened(category.name)));
    words[static_cast<std::size_t>(feature - features.begin())].emplace(category.words);
    names.push_back(category.name);
  }
  for (const std::size_t column : features)
    if (const std::string* const category = category_of(columns.name(column), names))
      throw UserError(fmt::format("{}: the column {} is called as the words of {} are; rename one of them",
                                  file, shortened(columns.name(column)), shortened(*category)));
  return words;
}

void check_targets(const std::string& file, const Columns& columns, const std::vector<std::size_t>& targets,
                   const std::vector<std::size_t>& features) {
  for (auto target = targets.begin(); target != targets.end(); ++target) {
    if (std::find(targets.begin(), target, *target) != target)
      throw UserError(fmt::format("{}: the target {} is given twice; give each target once", file,
                                  shortened(columns.name(*target))));
    if (std::ranges::find(features, *target) != features.end())
      throw UserError(fmt::format("{}: {} is both a feature and a target; give it as one of them", file,
                                  shortened(columns.name(*target))));
  }
}

void check_names(const CsvText& text, const CsvRow& first, const CsvOptions& options,
                 const std::vector<std::size_t>& features, std::size_t label) {
  if (!options.header) return check_no_header(text, first, features);
  if (!options.names_may_be_numbers) check_header(text, first, features);
  std::vector<std::size_t> used = features;
  if (label != no_column) used.push_back(label);
  // If the user lists the features, a column without a name is used on purpose.
  if (options.features.empty()) {
    check_named(text, first, used);
    if (options.label_is_assumed && label != no_column) check_assumed_label(text, first, label);
  }
  check_names_differ(text, first, used);
}

// The text of a label in the file, and its place.
struct NamedLabel {
  std::string text;
  std::string place;
};

std::vector<std::int64_t> place_labels(const std::vector<NamedLabel>& labels,
                                       const std::vector<std::string>& classes) {
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& name : classes) numbers.emplace(name, static_cast<std::int64_t>(numbers.size()));
  std::vector<std::int64_t> placed;
  for (const NamedLabel& label : labels) {
    const auto found = numbers.find(label.text);
    if (found == numbers.end())
      throw UserError(fmt::format("{}: '{}' is none of the classes {}; correct the label or add the class",
                                  label.place, shortened(label.text), list_of(classes)));
    placed.push_back(found->second);
  }
  return placed;
}

bool has_decimal_comma(std::string text) {
  if (std::ranges::count(text, ',') != 1) return false;
  std::ranges::replace(text, ',', '.');
  return is_number(text);
}

// `role`: "features" or "targets".
double parse_cell(const std::string& text, const std::string& place, const std::string& column,
                  std::string_view role) {
  double value = 0;
  const std::errc error = parse_number(text, value);
  if (error == std::errc::result_out_of_range)
    throw UserError(fmt::format("{}: '{}' in {} is out of the range of float32; scale the column", place,
                                shortened(text), column));
  if (error != std::errc{})
    throw UserError(fmt::format(
        "{}: '{}' in {} is not a finite number; {}", place, shortened(text), column,
        has_decimal_comma(text) ? std::string("write numbers with a point, not with a comma")
        : role == "targets"     ? std::string("targets are numbers, so correct the cell or leave the row out")
                                : std::string("features are numbers, so correct the cell or leave the "
                                                  "column out, or name it in data.categories if its cells "
                                                  "are words")));
  return value;
}

void check_width(const CsvText& text, const CsvRow& row, const Columns& columns) {
  const std::size_t width = columns.size();
  if (row.size() == width) return;
  const CsvCell& cell = row[std::min(width, row.size() - 1)];
  const bool ends_in_delimiter = row.size() == width + 1 && row.back().text.empty();
  const bool may_be_comment = columns.name(0).starts_with('#');
  throw UserError(fmt::format("{}: the row has {} cells, but the first row has {}; {}", text.place(cell),
                              row.size(), width,
                              ends_in_delimiter ? "remove the delimiter at its end"
                              : may_be_comment  ? "remove the first line if it is a comment"
                                                : "give every row the same number"));
}

// The columns that are read: features, then targets, and the label.
struct UsedColumns {
  std::vector<std::size_t> numbers;
  std::size_t features = 0;  // the first ones of `numbers`
  std::size_t label = no_column;
};

bool is_missing(const std::string& text) { return text.empty() || means_missing(text); }

// Returns the number of the word in a cell, or NaN for a missing word that may be missing.
double word_number(const CsvCell& cell, const std::string& place, const std::string& column,
                   WordNumbers& words, MissingCells missing) {
  if (is_missing(cell.text)) {
    if (missing != MissingCells::error) return std::numeric_limits<double>::quiet_NaN();
    throw UserError(
        fmt::format("{}: '{}' in {} means a missing word; fill in the cell, write another word, or "
                    "set data.missing",
                    place, cell.text, column));
  }
  const std::optional<std::int64_t> number = words.number_of(cell.text);
  if (!number)
    throw UserError(
        fmt::format("{}: '{}' in {} is none of the words of the training: {}; correct the cell, or "
                    "train on a table with this word",
                    place, shortened(cell.text), column, list_of(words.words())));
  constexpr std::size_t most_words = 1000;
  if (words.size() > most_words)
    throw UserError(
        fmt::format("{}: '{}' is one of more than {} different words in {}, and each word becomes a "
                    "feature; name the column in data.ignore, or write fewer words",
                    place, shortened(cell.text), most_words, column));
  return static_cast<double>(*number);
}

// The contents of the rows, with labels as text.
struct Table {
  std::vector<std::optional<WordNumbers>> words = {};  // of each feature; nothing for numbers
  std::vector<double> values = {};
  std::vector<NamedLabel> labels = {};
  std::int64_t dropped = 0;

  void append(const CsvText& text, const CsvRow& row, const Columns& columns, const UsedColumns& used,
              const CsvOptions& options) {
    check_width(text, row, columns);
    if (options.missing == MissingCells::drop && lacks_cell(row, used, options)) {
      ++dropped;
      return;
    }
    for (std::size_t i = 0; i < used.numbers.size(); ++i) {
      const std::size_t column = used.numbers[i];
      if (i < used.features && words[i]) {
        values.push_back(word_number(row[column], text.place(row[column]), columns.name(column), *words[i],
                                     options.missing));
        continue;
      }
      const bool is_replaced = i < used.features && options.missing != MissingCells::error;
      if (is_replaced && is_missing(row[column].text))
        values.push_back(options.missing == MissingCells::mean ? std::numeric_limits<double>::quiet_NaN()
                                                               : options.missing_value);
      else
        values.push_back(parse_cell(row[column].text, text.place(row[column]), columns.name(column),
                                    i < used.features ? "features" : "targets"));
    }
    const std::size_t label = used.label;
    labels.push_back(label == no_column ? NamedLabel{} : NamedLabel{row[label].text, text.place(row[label])});
    if (label != no_column && labels.back().text.empty())
      throw UserError(fmt::format("{}: the label in {} is missing; fill in the class or remove the row",
                                  labels.back().place, columns.name(label)));
  }

  // Returns the values as features and targets: a word has a feature for each of its column's words.
  std::vector<float> features(std::size_t columns) const {
    std::vector<std::vector<std::size_t>> places(columns);  // of the words among the features of their column
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i]) places[i] = words[i]->places();
    std::vector<float> made;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::vector<std::size_t>& place = places[i % columns];
      if (place.empty()) {
        made.push_back(static_cast<float>(values[i]));
        continue;
      }
      const std::size_t first = made.size();
      made.resize(first + place.size());
      if (!std::isnan(values[i])) made[first + place[static_cast<std::size_t>(values[i])]] = 1;
    }
    return made;
  }

  std::vector<std::string> classes() const {
    std::set<std::string> found;
    for (const NamedLabel& label : labels) found.insert(label.text);
    return sorted_names(found);
  }

 private:
  static bool lacks_cell(const CsvRow& row, const UsedColumns& used, const CsvOptions& options) {
    if (std::ranges::any_of(used.numbers, [&](std::size_t column) { return is_missing(row[column].text); }))
      return true;
    if (used.label == no_column) return false;
    const std::string& label = row[used.label].text;
    return options.missing_is_class ? label.empty() : is_missing(label);
  }
};

// Throws for a label that usually means a missing value, because it would become a class of its own.
void check_none_means_missing(const std::vector<NamedLabel>& labels) {
  for (const NamedLabel& label : labels)
    if (means_missing(label.text))
      throw UserError(
          fmt::format("{}: the label is '{}', as programs write a missing one; fill in the class, remove the "
                      "row, or set data.missing_is_class to true if a class is called so",
                      label.place, label.text));
}

}  // namespace

CsvDataset::CsvDataset(const std::filesystem::path& path, const CsvOptions& options) {
  const std::vector<std::uint8_t> bytes = InputFile(path).read_all();
  CsvText text(path.string(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options.delimiter);
  CsvRow row;
  if (!text.next(row))
    throw UserError(fmt::format("{}: the file is empty; it needs rows of samples", path.string()));
  check_first_line(text, row);
  const Columns columns(path.string(), row, options.header);
  const bool has_targets = !options.targets.empty();
  const bool has_label = options.labelled && !has_targets;
  const std::size_t label = has_label ? columns.find(options.label) : no_column;
  const std::vector<std::size_t> targets = find_all(columns, options.targets);
  const std::vector<std::size_t> features = feature_columns(columns, options, label, targets);
  if (features.empty())
    throw UserError(fmt::format("{}: {}; features need one at least", path.string(),
                                !options.ignored.empty() ? "no column is left to be a feature"
                                : has_targets            ? "all columns are targets"
                                                         : "the label is the only column"));
  check_ignored(path.string(), columns, options, label, targets);
  check_targets(path.string(), columns, targets, features);
  for (const std::size_t column : targets) target_names_.push_back(columns.name(column));
  if (label != no_column) label_name_ = columns.name(label);
  std::vector<std::size_t> numbers = features;
  numbers.insert(numbers.end(), targets.begin(), targets.end());
  check_names(text, row, options, numbers, label);

  const UsedColumns used{numbers, features.size(), label};
  Table table{.words = words_of(path.string(), columns, features, options.categories)};
  if (!options.header) table.append(text, row, columns, used, options);
  while (text.next(row)) table.append(text, row, columns, used, options);
  dropped_ = table.dropped;
  if (table.labels.empty())
    throw UserError(
        table.dropped == 0
            ? fmt::format("{}: no row follows the header; add samples", path.string())
            : fmt::format("{}: each of the {} rows lacks a cell, and data.missing is drop; fill in cells, "
                          "or remove the columns that lack them",
                          path.string(), table.dropped));
  if (options.class_names.empty() && !options.missing_is_class) check_none_means_missing(table.labels);
  class_names_ = options.class_names.empty() ? table.classes() : options.class_names;
  labels_ = has_label ? place_labels(table.labels, class_names_)
                      : std::vector<std::int64_t>(table.labels.size(), 0);
  if (has_label || has_targets) {
    std::vector<std::string> names;
    for (const std::size_t column : numbers) names.push_back(columns.name(column));
    check_has_numbers(path.string(), table.values, names);
    level_noise(table.values, names.size());
    check_precision(path.string(), table.values, names);
  }
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::string& name = columns.name(features[i]);
    if (!table.words[i])
      feature_names_.push_back(name);
    else
      for (const std::string& word : table.words[i]->words())
        feature_names_.push_back(feature_of_word(name, word));
  }
  values_ = table.features(numbers.size());
}

void CsvDataset::read(std::int64_t index, const SampleContext&, std::span<float> sample,
                      std::int64_t& label) const {
  const auto row = static_cast<std::size_t>(index);
  const auto width = feature_names_.size() + target_names_.size();
  std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(row * width), width, sample.begin());
  label = labels_[row];
}

}  // namespace plexaura
