#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "training/data/sample_source.h"

namespace plexaura {

// Samples that another rank reads: this rank knows only their number and their fields.
class RemoteSamples final : public SampleSource {
 public:
  RemoteSamples(std::int64_t size, std::vector<Field> fields) : size_(size), fields_(std::move(fields)) {}

  std::int64_t size() const override { return size_; }
  std::vector<Field> fields() const override { return fields_; }
  void read_fields(std::int64_t, const SampleContext&, std::span<const std::span<std::byte>>) const override {
    throw InternalError("a sample was read on a rank that has none");
  }

 private:
  std::int64_t size_;
  std::vector<Field> fields_;
};

}  // namespace plexaura
