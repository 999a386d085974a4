#include "core/ops/window.h"

#include <doctest/doctest.h>
#include <limits>
#include <type_traits>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/conv2d.h"
#include "core/ops/pool2d.h"

namespace plexaura::testing::window_test {

// One number means a square; two mean height and width.
static_assert(Size2d{3} == Size2d{3, 3});
static_assert(Size2d{} == Size2d{1, 1});
static_assert(Conv2dOptions{.padding = {2}}.padding == Size2d{2, 2});
static_assert(Conv2dOptions{.padding = 2}.padding == Size2d{2, 2});
static_assert(MaxPool2dOptions{.kernel = 3, .stride = 2}.stride == Size2d{2, 2});
static_assert(MaxPool2dOptions{.kernel = {3}, .stride = {2}}.stride == Size2d{2, 2});
static_assert(!std::is_constructible_v<Size2d, double>);
static_assert(!std::is_constructible_v<Size2d, int, double>);

TEST_CASE("a window reaches over one element or more, and moves, along both axes") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 1, 4, 4}});
  const auto refuses = [&](Size2d kernel, Size2d stride, const char* words) {
    CHECK_THROWS_WITH_AS(avg_pool2d(x, {.kernel = kernel, .stride = stride}), doctest::Contains(words),
                         UserError);
  };
  CHECK_NOTHROW(avg_pool2d(x, {.kernel = {1, 1}, .stride = Size2d{1, 1}}));
  refuses({0, 1}, {1, 1}, "the kernel must be 1 or more (here 0 x 1)");
  refuses({1, 0}, {1, 1}, "the kernel must be 1 or more (here 1 x 0)");
  refuses({1, 1}, {0, 1}, "the stride must be 1 or more (here 0 x 1)");
  refuses({1, 1}, {1, 0}, "the stride must be 1 or more (here 1 x 0)");
}

TEST_CASE("windows that 64 bits cannot count are refused") {
  constexpr std::int64_t large = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 1, 5, 5}});
  const Node w = graph.input("w", {DType::float32, {1, 1, 3, 3}});
  const auto refuses = [](auto&& build, const char* words) {
    CHECK_THROWS_WITH_AS(build(), doctest::Contains(words), UserError);
  };
  refuses([&] { conv2d(x, w, {.dilation = {0, 1}}); }, "the dilation must be 1 or more (here 0 x 1)");
  refuses([&] { conv2d(x, w, {.padding = {huge, 0}}); }, "the padding must be 2147483647 or less");
  refuses([&] { conv2d(x, w, {.padding = {0, large + 1}}); }, "(here 0 x 2147483648)");
  refuses([&] { conv2d(x, w, {.dilation = {huge, 1}}); }, "the dilation must be 2147483647 or less");
  refuses([&] { conv2d(x, w, {.stride = {1, huge}}); }, "the stride must be 2147483647 or less");
  const std::int64_t wide = std::int64_t{1} << 40;
  refuses(
      [&] {
        max_pool2d(x, {.kernel = {wide, wide}, .padding = {wide / 2, wide / 2}});
      },
      "the kernel must be 2147483647 or less");
  refuses(
      [&] {
        max_pool2d(x, {.kernel = {large, large}, .padding = {large / 2, large / 2}});
      },
      "at most 255 elements");
  refuses(
      [&] {
        conv2d_input_grad(w, x, {huge, 5}, {.padding = {1, 1}});
      },
      "along H the padded input has more elements than a 64-bit number can count");
  refuses(
      [&] {
        conv2d(x, graph.input("many", {DType::float32, {1, 2, 3, 3}}), {.groups = huge});
      },
      "9223372036854775807 groups of 2 channels are more than a 64-bit number can count");
  CHECK(conv2d(x, w, {.stride = {large, large}, .padding = {large, 0}}).shape() == Shape{1, 1, 3, 1});
}

TEST_CASE("a size is read from as many numbers as it has axes") {
  CHECK_THROWS_WITH_AS(FieldForm<Size2d>::from({1}), doctest::Contains("two numbers"), RuleError);
  CHECK_THROWS_WITH_AS(FieldForm<Size3d>::from({1, 2}), doctest::Contains("three numbers"), RuleError);
}

}  // namespace plexaura::testing::window_test
