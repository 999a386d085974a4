#include "core/ops/pool1d.h"

#include <doctest/doctest.h>

#include "tests/support/cases.h"
#include "tests/support/reference/reference.h"
#include "tests/support/reference/windows.h"

namespace plexaura::testing::pool1d_test {

namespace {

template <class Options>
std::vector<reference::WindowsAlongAxis> windows_of(const Shape& x, const Options& options) {
  return reference::windows_of(
      x, {{options.kernel}, {options.stride.value_or(options.kernel)}, {options.padding}, options.ceil_mode});
}

OpCase largest(const std::string& name, const std::string& op, Shape x, MaxPool1dOptions options) {
  return {"max_pool1d, " + name,
          op,
          [=](Graph&, auto in) { return std::vector{max_pool1d(in[0], options)}; },
          {{std::move(x), distinct(0.125)}},
          [=](auto in) {
            return std::vector{
                reference::pooled(in[0], windows_of(in[0].shape(), options),
                                  [](const auto& elements, double) { return reference::largest(elements); })};
          }};
}

OpCase average(const std::string& name, const std::string& op, Shape x, AvgPool1dOptions options) {
  return {"avg_pool1d, " + name,
          op,
          [=](Graph&, auto in) { return std::vector{avg_pool1d(in[0], options)}; },
          {{std::move(x)}},
          [=](auto in) {
            return std::vector{reference::pooled(
                in[0], windows_of(in[0].shape(), options), [&](const auto& elements, double size) {
                  return options.count_include_pad ? reference::sum(elements) / size
                                                   : reference::mean(elements);
                })};
          }};
}

const Cases cases({
    largest("plain", "max_pool2d", {2, 3, 6}, {.kernel = 2}),
    largest("overlapping, padded", "max_pool2d", {1, 2, 7}, {.kernel = 3, .stride = 2, .padding = 1}),
    largest("ceil mode", "max_pool3d", {1, 2, 8}, {.kernel = 3, .stride = 2, .ceil_mode = true}),
    largest("ceil mode without a rest", "max_pool2d", {1, 2, 7},
            {.kernel = 3, .stride = 2, .ceil_mode = true}),
    average("plain", "avg_pool2d", {2, 3, 6}, {.kernel = 2}),
    average("overlapping, padding not counted", "avg_pool2d", {1, 2, 7},
            {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false}),
    average("ceil mode", "avg_pool3d", {1, 2, 8},
            {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true}),
});

const WrongCases wrong({
    {"max_pool1d of images",
     "max_pool1d",
     [](Graph& graph) {
       max_pool1d(graph.input("x", {DType::float32, {1, 2, 3, 4}}), {.kernel = 2});
     },
     {"needs the axes N, C and L"}},
    {"avg_pool1d of images",
     "avg_pool1d",
     [](Graph& graph) {
       avg_pool1d(graph.input("x", {DType::float32, {1, 2, 3, 4}}), {.kernel = 2});
     },
     {"needs the axes N, C and L"}},
});

}  // namespace

TEST_CASE("pool1d: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("pool1d: what it refuses") { check_all(wrong); }

}  // namespace plexaura::testing::pool1d_test
