#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "training/data/dataset.h"

namespace plexaura::testing {

// Rows of features, all of them a hundredth of the row's index, with labels 0, 1 and 2 in turn. For probes
// that want a trainer to have some data.
class CountingRows final : public DatasetOf<float> {
 public:
  CountingRows(std::int64_t rows, std::int64_t features) : rows_(rows), features_(features) {}

  std::int64_t size() const override { return rows_; }
  Shape sample_shape() const override { return Shape{features_}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index % 3; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& label) const override {
    label = index % 3;
    std::ranges::fill(sample, 0.01F * static_cast<float>(index));
  }

 private:
  std::int64_t rows_;
  std::int64_t features_;
  std::vector<std::string> names_{"a", "b", "c"};
};

}  // namespace plexaura::testing
