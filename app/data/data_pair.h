#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/data/run_data.h"
#include "core/base/fnv.h"
#include "training/data/dataset.h"
#include "training/data/images/image_folder.h"

namespace plexaura {

using DatasetPtr = std::shared_ptr<const Dataset>;

// Returns a hash of the labels of all samples.
inline std::uint64_t label_hash(const Dataset& samples) {
  const std::vector<std::int64_t> labels = labels_of(samples);
  return fnv(std::as_bytes(std::span(labels)));
}

// The training and validation samples. Those of a regression are rows of features and targets.
struct DataPair {
  DatasetPtr train;
  DatasetPtr validation = {};                      // may be null if data.validation_limit is 0
  std::uint64_t origin = fnv_start;                // see RunData
  std::optional<std::uint64_t> older_origin = {};  // see RunData
  IgnoredFiles ignored = {};
  std::string preparation = {};   // see RunData
  ReadSamples read_samples = {};  // see RunData
  PixelScale pixels = {};
  bool is_cut = false;       // see RunData
  bool is_measured = false;  // see RunData
  TrainedData trained = {};  // for a classification the classes are those of `train`
};

// Samples of a table, of arrays or of shards, before they are split and scaled.
struct UnsplitSamples {
  DatasetPtr samples;
  DatasetPtr validation = {};  // null: some of `samples` are held out
  // Names of the features of rows, which may be scaled; empty: the samples are not rows.
  std::vector<std::string> columns = {};
  std::vector<std::string> targets = {};     // names of the targets; empty: the samples have classes
  std::vector<std::string> categories = {};  // see TrainedData
};

}  // namespace plexaura
