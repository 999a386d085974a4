#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "training/data/sample_source.h"

namespace plexaura::testing {

// Samples of another source, which send the signal SIGTERM to the process when the sample with this number is read,
// counted from 1 over all epochs.
class SignallingSamples final : public SampleSource {
 public:
  SignallingSamples(std::shared_ptr<const SampleSource> samples, int sample)
      : samples_(std::move(samples)), left_(sample) {}

  std::int64_t size() const override { return samples_->size(); }
  std::vector<Field> fields() const override { return samples_->fields(); }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override {
    if (--left_ == 0) std::raise(SIGTERM);
    samples_->read_fields(index, context, values);
  }

 private:
  std::shared_ptr<const SampleSource> samples_;
  mutable std::atomic<int> left_;
};

}  // namespace plexaura::testing
