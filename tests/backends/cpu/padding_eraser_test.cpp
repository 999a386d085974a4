#include "backends/cpu/fast/padding_eraser.h"

#include <doctest/doctest.h>
#include <functional>
#include <vector>

namespace plexaura::testing::padding_eraser_test {

namespace {

constexpr std::byte dirt{0xff};

// Calls body(offset, is_padding) for all elements of `type` in `layout`, padding included.
void for_each_element(const Layout& layout, const TensorType& type,
                      const std::function<void(std::int64_t, bool)>& body) {
  const auto offsets = layout.axis_offsets(layout.padded(type.shape));
  const std::function<void(std::size_t, std::int64_t, bool)> walk = [&](std::size_t axis, std::int64_t offset,
                                                                        bool is_padding) {
    if (axis == offsets.size()) return body(offset, is_padding);
    for (std::size_t i = 0; i < offsets[axis].size(); ++i)
      walk(axis + 1, offset + offsets[axis][i],
           is_padding || static_cast<std::int64_t>(i) >= type.shape[static_cast<std::int64_t>(axis)]);
  };
  walk(0, 0, false);
}

void check(const Layout& layout, const TensorType& type) {
  CAPTURE(to_string(layout));
  CAPTURE(to_string(type.shape));
  const std::size_t size = size_of(type.dtype);
  std::vector<std::byte> data(static_cast<std::size_t>(layout.bytes(type)), dirt);
  fast::PaddingEraser(layout, type).erase(data.data());
  for_each_element(layout, type, [&](std::int64_t offset, bool is_padding) {
    for (std::size_t i = 0; i < size; ++i)
      REQUIRE(data[static_cast<std::size_t>(offset) * size + i] == (is_padding ? std::byte{0} : dirt));
  });
}

}  // namespace

TEST_CASE("the padding of each axis becomes zero, and nothing else does") {
  for (const DType dtype : {DType::float32, DType::float64, DType::boolean}) {
    check(Layout({0}, {{0, 8}}), {dtype, {5}});
    check(Layout({0, 1, 2, 3}, {{1, 16}}), {dtype, {2, 17, 3, 3}});
    check(Layout({0, 2, 3, 1}, {{1, 8}}), {dtype, {2, 3, 3, 3}});
    check(Layout({0, 1, 2, 3}, {{1, 16}}), {dtype, {2, 16, 3, 3}});
    // Weights in blocks of input and output channels.
    check(Layout({0, 1, 2, 3}, {{1, 8}, {0, 8}}), {dtype, {3, 5, 2, 2}});
    check(Layout({1, 0, 2, 3}, {{0, 16}, {1, 16}}), {dtype, {33, 20, 3, 1}});
    check(Layout({0, 1, 2, 3}, {{1, 8}, {0, 8}}), {dtype, {8, 5, 2, 2}});
    check(Layout({0, 1, 2, 3}, {{1, 8}, {0, 8}}), {dtype, {3, 8, 2, 2}});
  }
}

TEST_CASE("much padding on two axes, which several threads share, becomes zero") {
  check(Layout({0, 1, 2, 3}, {{1, 8}, {0, 8}}), {DType::float32, {65, 65, 7, 7}});
}

}  // namespace plexaura::testing::padding_eraser_test
