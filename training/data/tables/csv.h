#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "training/data/dataset.h"
#include "training/data/tables/categories.h"

namespace plexaura {

// A column of a table: its name in the header, or its number, counted from 0 or, if negative, from the end
// (-1 is the last column).
using ColumnRef = std::variant<std::int64_t, std::string>;

// The error for a column that the options name and the table does not have.
class MissingColumn final : public UserError {
 public:
  MissingColumn(const std::string& text, ColumnRef missing) : UserError(text), column(std::move(missing)) {}

  ColumnRef column;
};

// The treatment of a cell of a feature that is empty or has a word for a missing value ("NA", "nan", "?"): it is an
// error; its row is left out; it becomes NaN, which StandardisedDataset replaces by the mean of its column; or it becomes
// CsvOptions::missing_value. A missing label or target is an error, but `drop` leaves out its row, too.
enum class MissingCells : std::uint8_t { error, drop, mean, value };

struct CsvOptions {
  bool header = true;  // true: the first line contains the names of the columns
  // True: a header may contain numbers as names of all features. False: such a line is an error, because it
  // may be a sample.
  bool names_may_be_numbers = false;
  ColumnRef label = std::int64_t{-1};
  // True: the user has not named the label. Then it is an error if a column is named "label",
  // "labels", "class" or "target", in small or capital letters, and the last column, which is the label, is not.
  bool label_is_assumed = false;
  bool labelled = true;  // false: there is no label column, and every label is 0
  // Columns of numbers to predict. If some are given, there is no label column.
  std::vector<ColumnRef> targets{};
  // The features, in the order of a sample. Empty: all columns except the label's, the targets' and ignored ones, in the
  // file's order.
  std::vector<ColumnRef> features{};
  // Columns that are not read. Their cells may be anything, and so may their names, if no used column has the same.
  std::vector<ColumnRef> ignored{};
  // Features whose cells are words, each with the permitted words, or with none, which permits the words in the file.
  std::vector<CategoryColumn> categories{};
  char delimiter = ',';
  // The permitted classes, in order (those of the training set, for a validation set). Empty: the classes in
  // the file, sorted as numbers if all are whole numbers, otherwise as text.
  std::vector<std::string> class_names{};
  // True: a class in the file may be named "NA", "nan", "None", "?" or another word that programs write for a
  // missing value.
  bool missing_is_class = false;
  MissingCells missing = MissingCells::error;
  double missing_value = 0;
};

// A table of numbers and one column of class labels, read into memory at construction. A sample is float32 [features];
// its label is the index of its class in class_names(). In a table with targets a sample is [features + targets], the
// targets last, and every label is 0: TargetSamples separates them. The file is a regular file of UTF-8 text. Lines end
// in LF or CRLF. Cells may be quoted ("a ""b"""). Blanks around a cell and empty lines are ignored. A column of words
// becomes one feature for each word, named "COLUMN=WORD", at the place of the column; a missing word is 0 in all of
// them if MissingCells::mean or value permits it. All other features are numbers: every cell must be a finite number,
// unless CsvOptions::missing says what replaces a missing one. No label may be empty or, unless missing_is_class is set
// or class_names has it, a word for a missing value. In a header every used column has a name, or `features` is given,
// and no other column has the same name. In a table with labels or targets, different numbers of a column must
// differ by more than the rounding of float32; numbers that differ only by the rounding of float64 become one number.
// The constructor throws UserError if a rule is broken, for a cell with file:line:column (both counted from 1, the
// column in characters). Thread-safe.
class CsvDataset final : public DatasetOf<float> {
 public:
  explicit CsvDataset(const std::filesystem::path& path, const CsvOptions& options = {});

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  bool in_memory() const override { return true; }
  Shape sample_shape() const override {
    return Shape{static_cast<std::int64_t>(feature_names_.size() + target_names_.size())};
  }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t index, const SampleContext& context, std::span<float> sample,
            std::int64_t& label) const override;

  // Returns the names of the features, in the order of a sample; "column 3" if there is no header, and "colour=red" for
  // a word.
  const std::vector<std::string>& feature_names() const { return feature_names_; }

  // Returns the names of the targets, in the order of CsvOptions::targets.
  const std::vector<std::string>& target_names() const { return target_names_; }

  // Returns the name of the label column; empty if there is none.
  const std::string& label_name() const { return label_name_; }

  // Returns the number of rows that were left out (MissingCells::drop).
  std::int64_t dropped() const { return dropped_; }

  // Returns all features and targets, sample by sample.
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<std::string> feature_names_;
  std::vector<std::string> target_names_;
  std::string label_name_;
  std::vector<std::string> class_names_;
  std::vector<float> values_;  // [size, features + targets]
  std::vector<std::int64_t> labels_;
  std::int64_t dropped_ = 0;
};

}  // namespace plexaura
