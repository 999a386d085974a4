#pragma once

#include <fmt/format.h>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "training/data/sample_source.h"

namespace plexaura::testing {

// The samples of another source, of which some cannot be read.
class BrokenSamples final : public SampleSource {
 public:
  BrokenSamples(std::shared_ptr<const SampleSource> whole, std::set<std::int64_t> broken)
      : whole_(std::move(whole)), broken_(std::move(broken)) {}
  std::int64_t size() const override { return whole_->size(); }
  std::vector<Field> fields() const override { return whole_->fields(); }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override {
    if (broken_.contains(index)) throw UserError(fmt::format("sample {} cannot be read", index));
    whole_->read_fields(index, context, values);
  }

 private:
  std::shared_ptr<const SampleSource> whole_;
  std::set<std::int64_t> broken_;
};

inline std::shared_ptr<const SampleSource> with_broken(std::shared_ptr<const SampleSource> whole,
                                                       std::set<std::int64_t> broken) {
  return std::make_shared<BrokenSamples>(std::move(whole), std::move(broken));
}

}  // namespace plexaura::testing
