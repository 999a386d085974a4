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

// For a trainer that makes no step: so many images of bytes, and labels, which nobody reads.
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

// What a step of training enqueues on a device that need not be there. The trainer was made for it.
WorkAccount account_of_step(DescribedBackend& device, Trainer& trainer);

// A table with a line for each kind of work of a step of so many samples, and the least time that the device needs: the sum
// over all calls, of which each takes as long as its bytes or its operations, whichever is longer.
std::string text_of(const WorkAccount& account, const DescribedBackend& device, std::int64_t samples);

}  // namespace plexaura
