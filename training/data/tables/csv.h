#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "training/data/dataset.h"

namespace plexaura {

// A column of a table: its name in the header, or its number counted from 0, or, negative, from the end (-1
// is the last).
using ColumnRef = std::variant<std::int64_t, std::string>;

struct CsvOptions {
  bool header = true;  // whether the first line names the columns
  // Whether a header may name all features by numbers. Otherwise such a line is an error: it may be a sample.
  bool names_may_be_numbers = false;
  ColumnRef label = std::int64_t{-1};
  // Whether nobody has named the label. Then a header that calls another column "label", "class" or "target" is an error.
  bool label_is_assumed = false;
  bool labelled = true;  // otherwise no column is the label's, and every label is 0
  // In the order of a sample; empty: all columns but the label's, in the file's order.
  std::vector<ColumnRef> features{};
  char delimiter = ',';
  // The classes that labels may name, in order (those of the training set, for a validation set). Empty:
  // those found in the file, sorted, as numbers where all are whole numbers and as text otherwise.
  std::vector<std::string> class_names{};
  // Whether a class that is found may be called "NA", "nan", "None", "?" or as programs otherwise write a missing
  // value.
  bool missing_is_class = false;
};

// A table of numbers and one column of class labels, read into memory at construction. A sample is float32
// [features]; its label is its class's place in class_names(). Lines end in LF or CRLF, cells may be quoted
// ("a ""b"""), blanks around a cell and empty lines are ignored, every cell of a feature is a finite number,
// no label is empty or found to be a word for a missing value, every column that is used has a name, unless `features`
// asks for it, and none has the name of another one. In a labelled table the numbers of a column differ by more than
// float32 rounds them; a column whose numbers differ by the rounding of float64 alone holds one number. The text is
// UTF-8, in a regular file. The constructor throws UserError naming file:line:column (both counted from 1, the column
// in characters) for whatever is otherwise. Thread-safe.
class CsvDataset final : public DatasetOf<float> {
 public:
  explicit CsvDataset(const std::filesystem::path& path, const CsvOptions& options = {});

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  bool in_memory() const override { return true; }
  Shape sample_shape() const override { return Shape{static_cast<std::int64_t>(feature_names_.size())}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t index, const SampleContext& context, std::span<float> sample,
            std::int64_t& label) const override;

  // The header's names of the features, in the order of a sample; "column 3" where there is no header.
  const std::vector<std::string>& feature_names() const { return feature_names_; }

  // Likewise of the labels; empty where there are none.
  const std::string& label_name() const { return label_name_; }

  // All features, sample by sample.
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<std::string> feature_names_;
  std::string label_name_;
  std::vector<std::string> class_names_;
  std::vector<float> values_;  // [size, features]
  std::vector<std::int64_t> labels_;
};

}  // namespace plexaura
