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

// A source of `size` images of bytes, with labels, for a trainer that makes no real step. Reading one throws.
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

// Returns the work that a training step enqueues on a device that need not exist. The trainer must have been
// made for it.
WorkAccount account_of_step(DescribedBackend& device, Trainer& trainer);

// Returns a table with a line for each kind of work in a step of `samples` samples, and the least time that
// the device needs for it: the sum over all calls, each of which takes as long as its bytes or its
// operations, whichever is longer.
std::string text_of(const WorkAccount& account, const DescribedBackend& device, std::int64_t samples);

}  // namespace plexaura
