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

// A position in an epoch.
struct EpochPosition {
  const std::vector<std::int64_t>& order;  // the order of the epoch
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t position = 0;  // index in the order
  // A part of the step's batch; samples of this part may replace the one at `position`.
  std::int64_t part = 0;
};

// Reads the sample at a position of an epoch's order. With OnError::skip, a sample that cannot be read is
// left out or, with `replace`, replaced by the next readable one of the same part, which usually belongs to
// one rank: first in the same step, then in the following steps, and after the last step in those from the
// beginning of the epoch. So the replacement does not depend on workers or timing, and batch sizes never
// change. Thread-safe.
class SampleReader {
 public:
  // `source` must outlive the reader.
  SampleReader(const SampleSource& source, const BatchPlan& plan, std::uint64_t seed, OnError on_error,
               bool replace);

  // Reads as SampleSource::read_fields() does. Returns false if the sample is left out. Throws the source's error if it
  // must not be skipped, and UserError if no sample of the part can replace it.
  bool read(const EpochPosition& place, std::span<const std::span<std::byte>> values);

  // Returns the index and the error of every sample that was skipped so far.
  std::map<std::int64_t, std::string> skipped() const;

 private:
  void read_replacement(const EpochPosition& place, std::span<const std::span<std::byte>> values);
  bool try_read(std::int64_t index, const SampleContext& context,
                std::span<const std::span<std::byte>> values);
  SampleContext context_of(const EpochPosition& place) const;
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
