#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "training/data/sample_source.h"
#include "training/data/sampler.h"

namespace plexaura {

// Samples that were read to find unreadable ones.
struct ReadSampleCount {
  std::int64_t read = 0;
  std::int64_t unreadable = 0;   // with OnError::skip
  std::string first_error = {};  // of the unreadable ones
};

// Reads the samples of one rank of `ranks`, as in the first epoch of a run with this seed, until all are read or
// `is_over` returns true. They are spread over the whole source, so that the first ones are a fair sample. Throws the
// source's error, or counts the sample with OnError::skip.
ReadSampleCount read_samples(const SampleSource& source, std::int64_t rank, std::int64_t ranks,
                             std::uint64_t seed, OnError on_error, const std::function<bool()>& is_over);

// Returns at most `count` samples of the source, spread evenly over it, in its order.
std::shared_ptr<const SampleSource> some_samples(std::shared_ptr<const SampleSource> source,
                                                 std::int64_t count);

}  // namespace plexaura
