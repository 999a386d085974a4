#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "training/data/stream_source.h"
#include "training/data/tables/csv.h"
#include "training/data/tables/standardise.h"

namespace plexaura {

struct CsvStreamOptions {
  // The options of the rows. If there are labels, class_names must be set, and each column of words must have its words,
  // because a stream cannot be searched for them.
  CsvOptions csv = {};
  Standardisation scale = {};       // scale of each feature and target, as StandardisedDataset uses it
  std::int64_t targets = 0;         // number of targets; 0: the rows have labels
  bool targets_are_labels = false;  // each target must be 0 or 1
  // Returns true if the reader should stop waiting for rows, because the run has been asked to end. Null: never. Several
  // ranks do not ask it, because they wait for the same rows.
  std::function<bool()> is_to_end = nullptr;
};

// The rows that a command prints as CSV, without a limit of their number. Each row is scaled. With targets the fields are
// those of TargetSamples, and otherwise those of Dataset. If `{rank}` occurs in the command, each rank runs the command
// for itself, and `{rank}` and `{ranks}` are replaced by its number and by their number. Otherwise all ranks run the same
// command and read the same rows. A command that ends with another status than 0 is an error. A
// command that prints nothing is waited for until it ends, or until is_to_end() returns true.
class CsvStream final : public StreamSource {
 public:
  CsvStream(std::string command, CsvStreamOptions options);

  std::vector<Field> fields() const override;
  bool is_divided() const override { return command_.find("{rank}") != std::string::npos; }
  std::unique_ptr<StreamReader> open(std::int64_t rank, std::int64_t ranks) const override;

 private:
  std::string command_;
  CsvStreamOptions options_;
};

}  // namespace plexaura
