#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "training/data/sample_source.h"
#include "training/data/sampler.h"

namespace plexaura {

// A place in an epoch.
struct EpochPosition {
  const std::vector<std::int64_t>& order;  // the epoch's
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t position = 0;  // in the order
  std::int64_t part = 0;      // of the step's batch: whose samples may replace this one
};

// Reads the sample at a position of an epoch's order. With OnError::skip a sample that cannot be
// read is left out or, where `replace`, replaced by the next readable one among those of the same part of batches, which
// most often are one rank's: first those of the same step, then of the following steps, round to the epoch's beginning.
// So the replacement depends on neither workers nor timing, and the sizes of batches never change. Thread-safe.
class SampleReader {
 public:
  // `source` must outlive the reader.
  SampleReader(const SampleSource& source, const BatchPlan& plan, std::uint64_t seed, OnError on_error,
               bool replace);

  // As SampleSource::read_fields; false where the sample is left out. Throws the source's error when it is
  // not to be skipped, and UserError when none of the part's samples can replace it.
  bool read(const EpochPosition& place, std::span<const std::span<std::byte>> values);

  // The index and the error of every sample that was skipped so far.
  std::map<std::int64_t, std::string> skipped() const;

 private:
  void read_replacement(const EpochPosition& place, std::span<const std::span<std::byte>> values);
  bool try_read(std::int64_t index, std::int64_t epoch, std::span<const std::span<std::byte>> values);
  bool known_broken(std::int64_t index) const;

  const SampleSource& source_;
  BatchPlan plan_;
  std::uint64_t seed_;
  OnError on_error_;
  bool replace_;
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::string> broken_;  // index of the sample -> its error
};

}  // namespace plexaura
