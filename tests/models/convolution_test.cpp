#include "models/layers/convolution.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::convolution_test {

namespace {

constexpr std::int64_t in = 2, out = 4, groups = 2, kernel = 3, stride = 2, padding = 1, length = 7;

// Runs a layer whose parameters are patterns on a pattern [1, in, length].
struct Ran {
  std::vector<double> x, weight, bias;
  Tensor y = {};

  explicit Ran(layers::Layer& layer) {
    ParameterStore store = make_store(layer, DType::float64);
    store.write("weight", pattern(store.specs()[0].type.shape, 5));
    store.write("bias", pattern({out}, 3));
    const Tensor values = pattern({1, in, length});
    x = values.to_doubles();
    weight = store.read("weight").to_doubles();
    bias = store.read("bias").to_doubles();
    Graph graph;
    y = run_graph(graph, store, {layer(graph.input("x", values.type()))}, {{"x", values}})[0];
  }
};

Shape shape_of(layers::Layer& layer, Shape input) {
  specs_of(layer, DType::float32);
  Graph graph;
  return layer(graph.input("x", {DType::float32, std::move(input)})).shape();
}

Shape weight_of(layers::Layer& layer) { return specs_of(layer, DType::float32)[0].type.shape; }

}  // namespace

TEST_CASE("a convolution along one axis computes what its formula says") {
  layers::Conv1d conv(in, out, kernel, {.stride = stride, .padding = padding, .groups = groups});
  const Ran ran(conv);
  REQUIRE(ran.y.shape() == Shape{1, out, 4});
  std::vector<double> expected;
  for (std::int64_t o = 0; o < out; ++o)
    for (std::int64_t i = 0; i < 4; ++i) {
      double sum = ran.bias[static_cast<std::size_t>(o)];
      for (std::int64_t k = 0; k < kernel; ++k) {
        const std::int64_t place = i * stride - padding + k;
        const std::int64_t channel = o / (out / groups);  // each group has one input channel
        if (place >= 0 && place < length)
          sum += ran.x[static_cast<std::size_t>(channel * length + place)] *
                 ran.weight[static_cast<std::size_t>(o * kernel + k)];
      }
      expected.push_back(sum);
    }
  check_close(ran.y, expected);
}

TEST_CASE("a transposed convolution along one axis computes what its formula says") {
  layers::ConvTranspose1d conv(in, out, kernel,
                               {.stride = stride, .padding = padding, .output_padding = 1, .groups = groups});
  const Ran ran(conv);
  constexpr std::int64_t extent = (length - 1) * stride - 2 * padding + kernel + 1;
  REQUIRE(ran.y.shape() == Shape{1, out, extent});
  std::vector<double> expected;
  for (const double bias : ran.bias) expected.insert(expected.end(), extent, bias);
  constexpr std::int64_t of_group = out / groups;
  for (std::int64_t c = 0; c < in; ++c)
    for (std::int64_t o = 0; o < of_group; ++o)
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t k = 0; k < kernel; ++k) {
          const std::int64_t place = i * stride - padding + k;
          if (place >= 0 && place < extent)
            expected[static_cast<std::size_t>((c * of_group + o) * extent + place)] +=
                ran.x[static_cast<std::size_t>(c * length + i)] *
                ran.weight[static_cast<std::size_t>((c * of_group + o) * kernel + k)];
        }
  check_close(ran.y, expected);
}

TEST_CASE("convolutions over two and three axes have PyTorch's shapes") {
  layers::Conv3d volume(4, 6, {1, 2, 3}, {.stride = {1, 2, 1}, .padding = 1, .groups = 2});
  CHECK(weight_of(volume) == Shape{6, 2, 1, 2, 3});
  CHECK(shape_of(volume, {1, 4, 3, 4, 5}) == Shape{1, 6, 5, 3, 5});
  layers::ConvTranspose2d image(4, 6, 2, {.stride = 2, .output_padding = {1, 0}, .groups = 2});
  CHECK(weight_of(image) == Shape{4, 3, 2, 2});
  CHECK(shape_of(image, {1, 4, 3, 5}) == Shape{1, 6, 7, 10});
  layers::ConvTranspose3d deep(4, 6, {1, 2, 3}, {.dilation = 2, .bias = false});
  CHECK(weight_of(deep) == Shape{4, 6, 1, 2, 3});
  CHECK(shape_of(deep, {1, 4, 2, 3, 4}) == Shape{1, 6, 2, 5, 8});
  CHECK(specs_of(deep, DType::float32).size() == 1);
}

TEST_CASE("convolutions start within 1 / sqrt(the second extent times the kernel), as in PyTorch") {
  layers::Conv1d conv(25, 10, 4);
  layers::ConvTranspose1d transposed(10, 25, 4);
  for (layers::Layer* layer :
       {static_cast<layers::Layer*>(&conv), static_cast<layers::Layer*>(&transposed)}) {
    const ParameterStore store = make_store(*layer, DType::float64, 1);
    for (const char* name : {"weight", "bias"}) {
      double largest = 0;
      for (const double value : store.read(name).to_doubles()) largest = std::max(largest, std::abs(value));
      CHECK(largest <= 0.1);
      CHECK(largest > 0.05);
    }
  }
}

TEST_CASE("convolutions refuse groups that do not divide the channels") {
  CHECK(user_error([] { layers::Conv3d(4, 6, 3, {.groups = 4}); }).find("cannot have 4 groups") !=
        std::string::npos);
  CHECK(user_error([] { layers::ConvTranspose1d(4, 6, 3, {.groups = 0}); }).find("cannot have 0 groups") !=
        std::string::npos);
}

}  // namespace plexaura::testing::convolution_test
