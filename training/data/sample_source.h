#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace plexaura {

// What augmentation may depend on besides the sample's index. A sample is a function of (seed, epoch, index)
// alone, so that neither the number of workers nor that of ranks changes a run.
struct SampleContext {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

// One tensor of every sample: an input of the model, or a target of its loss.
struct Field {
  std::string name;  // as the model asks for it
  TensorType type;   // of one sample, without the batch axis
  bool operator==(const Field&) const = default;
};

// The shape of a batch: [samples, sample shape...].
Shape batched(std::int64_t samples, const Shape& sample);

// What happens to a sample that cannot be read: the run ends with its error, or goes on without it. Only a
// UserError is the sample's fault: a disk or a system that fails ends the run.
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
  // Whether samples lie in memory, so that reading one costs little more than a copy.
  virtual bool in_memory() const { return false; }
  // Writes each field of the sample, row-major, over the bytes of its place in `values`. Throws UserError
  // that names the file or record when it cannot be read; what `values` holds then is unspecified.
  virtual void read_fields(std::int64_t index, const SampleContext& context,
                           std::span<const std::span<std::byte>> values) const = 0;
};

// "float32[4] samples, int64[] labels"
std::string to_string(std::span<const Field> fields);

}  // namespace plexaura
