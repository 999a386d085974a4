#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "training/data/sample_source.h"

namespace plexaura {

// A reader throws it instead of waiting for samples, if the run has been asked to end. The run then ends after the last
// step that has all its samples, as after a signal.
struct StreamInterrupted {};

// Reads the samples of a stream, one after the other. Only one thread uses it.
class StreamReader {
 public:
  StreamReader() = default;
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;
  virtual ~StreamReader();

  // Writes each field of the next sample, row-major, to its place in `values`. Returns false if no sample is left; the
  // contents of `values` are unspecified then. Waits for the sample. Any exception ends the run on all ranks,
  // as an error unless it is StreamInterrupted.
  virtual bool next(std::span<const std::span<std::byte>> values) = 0;
};

// Samples without random access whose number is not known, each with the same fields. A resumed run opens the stream
// again and passes over the samples that it has used, so that it continues exactly if the stream has the same samples
// again.
class StreamSource {
 public:
  StreamSource() = default;
  StreamSource(const StreamSource&) = delete;
  StreamSource& operator=(const StreamSource&) = delete;
  virtual ~StreamSource();

  virtual std::vector<Field> fields() const = 0;
  // True if each rank reads samples of its own. False if all ranks read the same samples: each then trains on its part of
  // each batch, so that the run does not depend on the number of ranks. Returns the same on all ranks.
  // TrainerOptions::data_origin must differ between divided and undivided streams, because a checkpoint counts their
  // samples in different ways.
  virtual bool is_divided() const = 0;
  // Opens the samples of a rank, from the first one on. Ignores `rank` and `ranks` if the stream is not divided. Throws
  // UserError if they cannot be opened.
  virtual std::unique_ptr<StreamReader> open(std::int64_t rank, std::int64_t ranks) const = 0;
};

// Returns a reader with the samples of `reader` in another order: each sample is drawn at random from the next ones that
// have not come yet, of which it keeps `buffer` in memory. The order depends on seed, buffer and the number of samples.
std::unique_ptr<StreamReader> shuffled(std::unique_ptr<StreamReader> reader, std::span<const Field> fields,
                                       std::int64_t buffer, std::uint64_t seed);

}  // namespace plexaura
