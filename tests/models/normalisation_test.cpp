#include "models/layers/normalisation.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::normalisation_test {

namespace {

constexpr std::int64_t samples = 2, channels = 4, length = 3;
constexpr std::size_t elements = samples * channels * length;

const Tensor& input() {
  static const Tensor x = pattern({samples, channels, length});
  return x;
}

// Runs a layer on input() with patterns as its parameters, if it has any.
struct Ran {
  std::vector<double> weight = {};
  std::vector<double> bias = {};
  Tensor y = {};

  explicit Ran(layers::Layer& layer) {
    ParameterStore store = make_store(layer, DType::float64);
    for (const ParameterSpec& spec : store.specs()) {
      store.write(spec.name, pattern(spec.type.shape, 5, spec.name == "bias" ? 1 : 2));
      (spec.name == "bias" ? bias : weight) = store.read(spec.name).to_doubles();
    }
    Graph graph;
    y = run_graph(graph, store, {layer(graph.input("x", input().type()))}, {{"x", input()}})[0];
  }

  // Checks that elements of equal `group_of(i)` were normalised together, and that the numbers of the parameters at
  // `place_of(i)` scaled and shifted element i.
  template <class Group, class Place>
  void check(const Group& group_of, const Place& place_of) const {
    const std::vector<double> x = input().to_doubles();
    std::vector<double> expected;
    for (std::size_t i = 0; i < elements; ++i) {
      double count = 0, mean = 0, square = 0;
      for (std::size_t j = 0; j < elements; ++j)
        if (group_of(j) == group_of(i)) ++count, mean += x[j], square += x[j] * x[j];
      mean /= count;
      const double y = (x[i] - mean) / std::sqrt(square / count - mean * mean + 1e-5);
      const std::size_t place = place_of(i);
      expected.push_back(y * (weight.empty() ? 1 : weight[place]) + (bias.empty() ? 0 : bias[place]));
    }
    check_close(y, expected);
  }
};

std::size_t channel_of(std::size_t element) { return element / length % channels; }
std::size_t row_of(std::size_t element) { return element / length; }

}  // namespace

TEST_CASE("a layer norm normalises over the last axes, with or without parameters") {
  const auto column = [](std::size_t i) { return i % length; };
  layers::LayerNorm last(length);
  Ran(last).check(row_of, column);
  layers::LayerNorm scaled(length, {.bias = false});
  Ran(scaled).check(row_of, column);
  layers::LayerNorm plain(length, {.weight = false, .bias = false});
  Ran(plain).check(row_of, column);
  layers::LayerNorm both(Shape{channels, length});
  Ran(both).check([](std::size_t i) { return i / (channels * length); },
                  [](std::size_t i) { return i % (channels * length); });
}

TEST_CASE("a group norm normalises the groups of each sample, and an instance norm each channel") {
  const auto pair_of_channels = [](std::size_t i) { return i / (2 * length); };
  layers::GroupNorm groups(2, channels);
  Ran(groups).check(pair_of_channels, channel_of);
  layers::GroupNorm plain(2, channels, {.affine = false});
  Ran(plain).check(pair_of_channels, channel_of);
  layers::InstanceNorm1d each(channels, {.affine = true});
  Ran(each).check(row_of, channel_of);
  layers::InstanceNorm1d plain_each(channels);
  Ran(plain_each).check(row_of, channel_of);
}

TEST_CASE("an RMS norm divides by the root of the mean square") {
  layers::RmsNorm norm(length, {.epsilon = 0.25});
  const Ran ran(norm);
  const std::vector<double> x = input().to_doubles();
  std::vector<double> expected;
  for (std::size_t i = 0; i < elements; ++i) {
    double square = 0;
    for (std::size_t j = 0; j < length; ++j) square += std::pow(x[i / length * length + j], 2) / length;
    expected.push_back(x[i] * ran.weight[i % length] / std::sqrt(square + 0.25));
  }
  check_close(ran.y, expected);
}

TEST_CASE("norms start as ones and zeros") {
  layers::GroupNorm norm(1, 2);
  const ParameterStore store = make_store(norm, DType::float32, 1);
  check_close(store.read("weight"), {1, 1});
  check_close(store.read("bias"), {0, 0});
}

TEST_CASE("norms refuse what does not fit") {
  CHECK(user_error([] { layers::GroupNorm(3, 4); }) ==
        "a group norm of 4 channels cannot have 3 groups; the groups must divide the channels evenly");
  CHECK(user_error([] { layers::LayerNorm(3, {.weight = false}); }).find("without a weight") !=
        std::string::npos);
  CHECK(user_error([] { layers::LayerNorm(Shape{}); }).find("one axis or more") != std::string::npos);
  layers::LayerNorm plain(5, {.weight = false, .bias = false});
  layers::InstanceNorm instance(3);
  Graph graph;
  const Node x = graph.input("x", input().type());
  CHECK(
      user_error([&] { plain(x); })
          .ends_with(": a layer norm over [5] is given float64[2,4,3]; its last extents must be those of the "
                     "layer"));
  CHECK(user_error([&] {
          instance(x);
        }).ends_with(": a norm of 3 channels is given float64[2,4,3]; it takes [N, 3, ...]"));
}

}  // namespace plexaura::testing::normalisation_test
