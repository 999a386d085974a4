#pragma once

#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/dataset.h"
#include "training/data/images/image.h"

namespace plexaura::testing {

// Returns the folder of real data sets, $PLEXAURA_DATA. If it is not set, prints that the case is skipped.
std::optional<std::filesystem::path> real_data();

// Returns an image with a left half of one colour and a right half of another.
Image two_colours(std::int64_t width, std::int64_t height, std::array<std::uint8_t, 3> left,
                  std::array<std::uint8_t, 3> right);

// A dataset whose sample i is [i, epoch] with label i % 3; indices in `broken` cannot be read.
class CountingDataset final : public DatasetOf<float> {
 public:
  explicit CountingDataset(std::int64_t size, std::vector<std::int64_t> broken = {});

  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return Shape{2}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override { return index % 3; }
  void read(std::int64_t index, const SampleContext& context, std::span<float> sample,
            std::int64_t& label) const override;

 private:
  std::int64_t size_;
  std::vector<std::int64_t> broken_;
  std::vector<std::string> class_names_{"a", "b", "c"};
};

}  // namespace plexaura::testing
