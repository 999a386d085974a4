#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "training/data/sample_source.h"
#include "training/data/sampler.h"

namespace plexaura {

// The result of read_samples().
struct ReadSampleCount {
  std::int64_t read = 0;
  std::int64_t unreadable = 0;   // number of samples that cannot be read, with OnError::skip
  std::string first_error = {};  // error of the first of these samples
};

// Reads the samples of one rank of `ranks`, as in the first epoch of a run with this seed, until all are read
// or `is_over` returns true. The samples are spread over the whole source, so that even the first ones
// represent it. Throws the source's error, or counts the sample with OnError::skip.
ReadSampleCount read_samples(const SampleSource& source, std::int64_t rank, std::int64_t ranks,
                             std::uint64_t seed, OnError on_error, const std::function<bool()>& is_over);

// Returns at most `count` samples of the source, spread evenly over it, in its order.
std::shared_ptr<const SampleSource> some_samples(std::shared_ptr<const SampleSource> source,
                                                 std::int64_t count);

}  // namespace plexaura
