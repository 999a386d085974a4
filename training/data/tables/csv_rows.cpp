#include "training/data/tables/csv_rows.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "training/data/tables/csv_cells.h"
#include "training/data/tables/csv_header.h"
#include "training/data/tables/csv_numbers.h"

namespace plexaura {

namespace {

constexpr std::size_t no_column = std::numeric_limits<std::size_t>::max();

std::vector<std::size_t> find_all(const CsvColumns& columns, const std::vector<ColumnRef>& wanted) {
  std::vector<std::size_t> found;
  for (const ColumnRef& column : wanted) found.push_back(columns.find(column));
  return found;
}

std::vector<std::size_t> feature_columns(const CsvColumns& columns, const CsvOptions& options,
                                         std::size_t label, const std::vector<std::size_t>& targets) {
  if (!options.features.empty()) return find_all(columns, options.features);
  const std::vector<std::size_t> ignored = find_all(columns, options.ignored);
  std::vector<std::size_t> chosen;
  for (std::size_t column = 0; column < columns.size(); ++column)
    if (column != label && std::ranges::find(targets, column) == targets.end() &&
        std::ranges::find(ignored, column) == ignored.end())
      chosen.push_back(column);
  return chosen;
}

void check_ignored(const std::string& file, const CsvColumns& columns, const CsvOptions& options,
                   std::size_t label, const std::vector<std::size_t>& targets) {
  for (const std::size_t column : find_all(columns, options.ignored))
    if (column == label || std::ranges::find(targets, column) != targets.end())
      throw UserError(fmt::format("{}: {} is ignored, and it is {}; name it as one of both", file,
                                  shortened(columns.name(column)),
                                  column == label ? "the label" : "a target"));
}

// Returns for each column of features its WordNumbers, or nothing if it is a column of numbers.
std::vector<std::optional<WordNumbers>> words_of(const std::string& file, const CsvColumns& columns,
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

void check_targets(const std::string& file, const CsvColumns& columns,
                   const std::vector<std::size_t>& targets, const std::vector<std::size_t>& features) {
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

bool has_decimal_comma(std::string text) {
  if (std::ranges::count(text, ',') != 1) return false;
  std::ranges::replace(text, ',', '.');
  return is_number(text);
}

// Returns the number in a cell. `role` is "features" or "targets".
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

void check_width(const CsvText& text, const CsvRow& row, const CsvColumns& columns) {
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

}  // namespace

std::size_t CsvColumns::find_name(const std::string& name) const {
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

std::size_t CsvColumns::find_number(std::int64_t number) const {
  const auto count = static_cast<std::int64_t>(names_.size());
  if (number < -count || number >= count)
    throw MissingColumn(
        fmt::format("{}: column {} does not exist; the columns are numbered from 0 to {} (or {} to -1)",
                    file_, number, count - 1, -count),
        number);
  return static_cast<std::size_t>(number < 0 ? number + count : number);
}

ClassPlaces::ClassPlaces(std::vector<std::string> classes) : classes_(std::move(classes)) {
  for (const std::string& name : classes_) places_.emplace(name, std::ssize(places_));
}

std::int64_t ClassPlaces::of(const CsvLabel& label) const {
  const auto found = places_.find(label.text);
  if (found == places_.end())
    throw UserError(fmt::format("{}: '{}' is none of the classes {}; correct the label or add the class",
                                label.place, shortened(label.text), list_of(classes_)));
  return found->second;
}

CsvRows::CsvRows(const std::string& file, const CsvText& text, const CsvRow& first, const CsvOptions& options)
    : options_(options), columns_(file, first, options.header) {
  const bool has_targets = !options.targets.empty();
  if (options.labelled && !has_targets) label_ = columns_.find(options.label);
  const std::vector<std::size_t> targets = find_all(columns_, options.targets);
  const std::vector<std::size_t> features = feature_columns(columns_, options, label_, targets);
  if (features.empty())
    throw UserError(fmt::format("{}: {}; features need one at least", file,
                                !options.ignored.empty() ? "no column is left to be a feature"
                                : has_targets            ? "all columns are targets"
                                                         : "the label is the only column"));
  check_ignored(file, columns_, options, label_, targets);
  check_targets(file, columns_, targets, features);
  numbers_ = features;
  numbers_.insert(numbers_.end(), targets.begin(), targets.end());
  features_ = features.size();
  check_names(text, first, options, numbers_, label_);
  words_ = words_of(file, columns_, features, options.categories);
}

void CsvRows::append(const CsvText& text, const CsvRow& row) {
  check_width(text, row, columns_);
  if (options_.missing == MissingCells::drop && lacks_cell(row)) {
    ++dropped_;
    return;
  }
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const std::size_t column = numbers_[i];
    if (i < features_ && words_[i]) {
      values_.push_back(word_number(row[column], text.place(row[column]), columns_.name(column), *words_[i],
                                    options_.missing));
      continue;
    }
    const bool is_replaced = i < features_ && options_.missing != MissingCells::error;
    if (is_replaced && is_missing(row[column].text))
      values_.push_back(options_.missing == MissingCells::mean ? std::numeric_limits<double>::quiet_NaN()
                                                               : options_.missing_value);
    else
      values_.push_back(parse_cell(row[column].text, text.place(row[column]), columns_.name(column),
                                   i < features_ ? "features" : "targets"));
  }
  labels_.push_back(label_ == no_column ? CsvLabel{} : CsvLabel{row[label_].text, text.place(row[label_])});
  if (label_ != no_column && labels_.back().text.empty())
    throw UserError(fmt::format("{}: the label in {} is missing; fill in the class or remove the row",
                                labels_.back().place, columns_.name(label_)));
}

void CsvRows::clear() {
  values_.clear();
  labels_.clear();
}

std::vector<float> CsvRows::values() {
  const std::size_t columns = numbers_.size();
  places_.resize(columns);
  for (std::size_t i = 0; i < words_.size(); ++i)
    if (words_[i] && places_[i].size() != words_[i]->size()) places_[i] = words_[i]->places();
  std::vector<float> made;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::vector<std::size_t>& place = places_[i % columns];
    if (place.empty()) {
      made.push_back(static_cast<float>(values_[i]));
      continue;
    }
    const std::size_t first = made.size();
    made.resize(first + place.size());
    if (!std::isnan(values_[i])) made[first + place[static_cast<std::size_t>(values_[i])]] = 1;
  }
  return made;
}

std::vector<std::string> CsvRows::classes() const {
  std::set<std::string> found;
  for (const CsvLabel& label : labels_) found.insert(label.text);
  return sorted_names(found);
}

std::vector<std::int64_t> CsvRows::placed_labels(const ClassPlaces& places) const {
  std::vector<std::int64_t> placed;
  for (const CsvLabel& label : labels_) placed.push_back(places.of(label));
  return placed;
}

void CsvRows::check_numbers(const std::string& file) {
  std::vector<std::string> names;
  for (const std::size_t column : numbers_) names.push_back(columns_.name(column));
  check_has_numbers(file, values_, names);
  level_noise(values_, names.size());
  check_precision(file, values_, names);
}

std::vector<std::string> CsvRows::feature_names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < features_; ++i) {
    const std::string& name = columns_.name(numbers_[i]);
    if (!words_[i])
      names.push_back(name);
    else
      for (const std::string& word : words_[i]->words()) names.push_back(feature_of_word(name, word));
  }
  return names;
}

std::vector<std::string> CsvRows::target_names() const {
  std::vector<std::string> names;
  for (std::size_t i = features_; i < numbers_.size(); ++i) names.push_back(columns_.name(numbers_[i]));
  return names;
}

std::string CsvRows::label_name() const { return has_label() ? columns_.name(label_) : std::string(); }

bool CsvRows::lacks_cell(const CsvRow& row) const {
  if (std::ranges::any_of(numbers_, [&](std::size_t column) { return is_missing(row[column].text); }))
    return true;
  if (label_ == no_column) return false;
  const std::string& label = row[label_].text;
  return options_.missing_is_class ? label.empty() : is_missing(label);
}

}  // namespace plexaura
