#pragma once

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "training/data/tables/csv.h"
#include "training/data/tables/csv_text.h"

namespace plexaura {

// The columns of a file, found by name or number.
class CsvColumns {
 public:
  CsvColumns(std::string file, const CsvRow& first, bool header) : file_(std::move(file)) {
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
  std::size_t find_name(const std::string& name) const;
  std::size_t find_number(std::int64_t number) const;

  std::string file_;
  std::vector<std::string> names_;
};

// The text of a label in the file, and its place.
struct CsvLabel {
  std::string text;
  std::string place;
};

// The places of classes among all classes.
class ClassPlaces {
 public:
  explicit ClassPlaces(std::vector<std::string> classes);
  // Throws UserError for a label that is none of the classes.
  std::int64_t of(const CsvLabel& label) const;

 private:
  std::vector<std::string> classes_;
  std::map<std::string, std::int64_t> places_;
};

// The rows of a table that were read so far, as numbers, with labels as text. Used by the classes that read tables.
class CsvRows {
 public:
  // Finds the columns that are read. `first` is the first row of the file, and is not appended. Throws UserError, and
  // MissingColumn, as CsvDataset does.
  CsvRows(const std::string& file, const CsvText& text, const CsvRow& first, const CsvOptions& options);

  // Throws UserError for a row of another width, and for a cell that breaks a rule of CsvDataset.
  void append(const CsvText& text, const CsvRow& row);
  // Forgets the rows, and keeps the words.
  void clear();

  const std::vector<CsvLabel>& labels() const { return labels_; }
  std::int64_t dropped() const { return dropped_; }
  // Returns the classes that the labels name, in their order.
  std::vector<std::string> classes() const;
  // Returns the place of each label. Throws UserError for a label that is none of the classes.
  std::vector<std::int64_t> placed_labels(const ClassPlaces& places) const;
  // Returns features and targets, row by row: a word has a feature for each of its column's words.
  std::vector<float> values();
  // The checks of csv_numbers.h. They may change the numbers.
  void check_numbers(const std::string& file);

  // Return the names of the features, one for each word; of the targets; and of the label.
  std::vector<std::string> feature_names() const;
  std::vector<std::string> target_names() const;
  std::string label_name() const;
  bool has_label() const { return label_ != no_column; }

 private:
  static constexpr std::size_t no_column = std::numeric_limits<std::size_t>::max();

  bool lacks_cell(const CsvRow& row) const;

  CsvOptions options_;
  CsvColumns columns_;
  std::vector<std::size_t> numbers_;  // the columns of the features, and then of the targets
  std::size_t features_ = 0;          // number of columns of features in `numbers_`
  std::size_t label_ = no_column;
  // For each column of features: its words; empty for numbers.
  std::vector<std::optional<WordNumbers>> words_;
  // For each column of features: WordNumbers::places() of its words.
  std::vector<std::vector<std::size_t>> places_;
  std::vector<double> values_;  // features and targets, row by row; NaN for a missing cell
  std::vector<CsvLabel> labels_;
  std::int64_t dropped_ = 0;
};

}  // namespace plexaura
