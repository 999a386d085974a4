#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace plexaura {

// The parameters of augmentation besides the sample's index. A sample is a function of these and of the index alone,
// so that a run does not depend on the number of workers or ranks.
struct SampleContext {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  // For sources that mix samples: the step in the epoch, and the index of the sample before this one in the batch of the
  // step over all ranks, which for the first sample is the last one. Negative: the sample is not read for a batch.
  std::int64_t step = 0;
  std::int64_t partner = -1;
};

// One tensor of every sample: an input of the model, or a target of its loss.
struct Field {
  std::string name;  // the name by which the model asks for the field
  TensorType type;   // type of one sample, without the batch axis
  bool operator==(const Field&) const = default;
};

// Returns the shape of a batch: [samples, sample shape...].
Shape batched(std::int64_t samples, const Shape& sample);

// The reaction to a sample that cannot be read: the run ends with the error, or continues without the sample.
// Only a UserError counts as an error of the sample; LimitReached, and other errors, of a disk or the system, always
// end the run.
enum class OnError { fail, skip };

// Samples with random access, each with the same fields. All functions are const and may be called from
// several threads at once. An index is in [0, size()).
class SampleSource {
 public:
  SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  virtual ~SampleSource();

  virtual std::int64_t size() const = 0;
  virtual std::vector<Field> fields() const = 0;
  // True if samples are in memory, so that reading one costs little more than a copy.
  virtual bool in_memory() const { return false; }
  // Writes each field of the sample, row-major, to its place in `values`. Throws UserError that names the
  // file or record if it cannot be read; the contents of `values` are unspecified then.
  virtual void read_fields(std::int64_t index, const SampleContext& context,
                           std::span<const std::span<std::byte>> values) const = 0;
};

// Returns a text such as "float32[4] samples, int64[] labels".
std::string to_string(std::span<const Field> fields);

}  // namespace plexaura
