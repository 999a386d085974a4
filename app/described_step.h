#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device/described_backend.h"
#include "training/data/sample_source.h"
#include "training/loop/trainer.h"

namespace plexaura {

// A source of `size` images of bytes, with labels, for a trainer that makes no real step. Reading a sample
// throws.
class UnreadSamples final : public SampleSource {
 public:
  UnreadSamples(std::int64_t size, const Shape& sample);

  std::int64_t size() const override { return size_; }
  std::vector<Field> fields() const override { return fields_; }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override;

 private:
  std::int64_t size_;
  std::vector<Field> fields_;
};

// Returns the work that a training step enqueues on a device, which need not exist. The trainer must have
// been made with this device.
WorkAccount account_of_step(DescribedBackend& device, Trainer& trainer);

// Returns a table with a line for each kind of work in a step of `samples` samples. It shows the least time
// that the device needs for that work: the sum over all calls. A call takes the time of its bytes or of its
// operations, whichever is longer.
std::string text_of(const WorkAccount& account, const DescribedBackend& device, std::int64_t samples);

}  // namespace plexaura
