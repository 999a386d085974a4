// Tests elementwise ops that share a launch on CUDA, on its simulated runtime: the results have the same bits
// as without sharing.

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <random>

#include "backends/registry.h"
#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/normalise_image.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/layout_backend.h"
#include "tests/support/pattern.h"
#include "tests/support/simulated_widths.h"

namespace plexaura::testing::cuda_chain_regions_test {

namespace {

std::unique_ptr<Backend> simulation() {
  const auto known = known_backends();
  const bool exists = std::ranges::find(known, "simulated_cuda") != known.end();
  return exists ? open_backend("simulated_cuda") : nullptr;  // builds with sanitizers do not have it
}

// A graph whose inputs are filled with patterns.
struct Net {
  Node input(const char* name, DType dtype, const Shape& shape) {
    return inputs.emplace_back(graph.input(name, {dtype, shape}));
  }

  std::vector<Tensor> values() const {
    std::vector<Tensor> values;
    std::int64_t a = 5;
    for (const Node& node : inputs)
      values.push_back(node.dtype() == DType::uint8
                           ? pattern(node.shape(), 37, 11, 256, 0, 1).cast(DType::uint8)
                           : pattern(node.shape(), a += 2).cast(node.dtype()));
    return values;
  }

  std::shared_ptr<const Program> program(Backend& backend) const {
    std::vector<ProgramOutput> outputs;
    for (const Node& node : results) outputs.push_back({.node = node});
    return compile(graph, outputs, backend);
  }

  std::vector<std::size_t> sizes_of_launches(Backend& backend) const {
    std::vector<std::size_t> sizes;
    for (const Instruction& instruction : program(backend)->instructions)
      sizes.push_back(instruction.nodes.size());
    return sizes;
  }

  std::string layout_of_first_result(Backend& backend) const {
    return to_string(program(backend)->instructions.front().outputs[0]->layout);
  }

  void check_bits(Backend& backend) const {
    const auto together = Runner(graph, results, backend)(values());
    const auto one_by_one = Runner(graph, results, backend, {.optimise = false})(values());
    for (std::size_t i = 0; i < results.size(); ++i) {
      CAPTURE(i);
      CHECK(together[i].to_doubles() == one_by_one[i].to_doubles());
    }
  }

  Graph graph;
  std::vector<Node> inputs;
  std::vector<Node> results;
};

// Returns a random op on random values of the same floating dtype.
Node random_step(std::mt19937& random, const std::vector<Node>& of) {
  const auto any = [&] { return of[random() % of.size()]; };
  switch (random() % 9) {
    case 0:
      return relu(any());
    case 1:
      return any() + any();
    case 2:
      return any() * any();
    case 3:
      return weighted_sum(any(), 0.7, any(), -1.3);
    case 4:
      return where(gt(any(), any()), any(), any());
    case 5:
      return clip(any(), -0.5, 1.5);
    case 6:
      return tanh(any());
    case 7:
      return cast(cast(any(), of[0].dtype() == DType::float64 ? DType::float64 : DType::float32),
                  of[0].dtype());
    default:
      return maximum(any(), 0.25);
  }
}

}  // namespace

TEST_CASE("a chain of elementwise ops on CUDA is one launch") {
  const auto cuda = simulation();
  if (!cuda) return;
  for (const LayoutOfRank layout_of : {in_blocks, in_channels_last}) {
    LayoutBackend backend(*cuda, layout_of);
    for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
      CAPTURE(name_of(dtype));
      Net net;
      const Node a = net.input("a", dtype, {2, 3, 5, 4});
      const Node b = net.input("b", dtype, {2, 3, 5, 4});
      const Node s = net.input("s", dtype, {});
      net.results = {where(ge(a, s), relu(a + b) * s, leaky_relu(a, 0.3) - b)};
      auto sizes = net.sizes_of_launches(backend);
      std::erase(sizes, 1U);  // removes the reorders
      CHECK(sizes == std::vector<std::size_t>{7});
      net.check_bits(backend);
    }
  }
}

TEST_CASE("a chain on CUDA rounds between its ops, and changes the type where they do") {
  const auto cuda = simulation();
  if (!cuda) return;
  for (const DType narrow : {DType::bfloat16, DType::float16}) {
    Net net;
    const Node a = net.input("a", DType::float32, {700});
    const Node b = net.input("b", narrow, {700});
    net.results = {cast(cast(1.001 * a, narrow) * b, DType::float32) + a, cast(gt(a, 0), narrow)};
    net.check_bits(*cuda);
    CHECK(net.sizes_of_launches(*cuda).size() == 2);
  }
}

TEST_CASE("random chains on CUDA give the bits of their ops") {
  const auto cuda = simulation();
  if (!cuda) return;
  std::mt19937 random(3);
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
    for (int round = 0; round < 20; ++round) {
      CAPTURE(name_of(dtype));
      CAPTURE(round);
      Net net;
      std::vector<Node> values{net.input("a", dtype, {3, 100}), net.input("b", dtype, {3, 100}),
                               net.input("s", dtype, {1, 1})};
      for (int step = 0; step < 18; ++step) values.push_back(random_step(random, values));
      std::erase_if(values, [](const Node& node) { return node.shape().elements() == 1; });
      net.results = {values.back(), values[values.size() / 2 + 1]};
      net.check_bits(*cuda);
    }
}

TEST_CASE("a thread computes several elements of a chain on CUDA at once") {
  const auto cuda = simulation();
  if (!cuda) return;
  for (const auto& [dtype, width] :
       {std::pair{DType::bfloat16, 8}, {DType::float16, 8}, {DType::float32, 8}, {DType::float64, 2}})
    for (const std::int64_t count : {1, 7, 37, 5000}) {
      CAPTURE(name_of(dtype));
      CAPTURE(count);
      Net net;
      const Node a = net.input("a", dtype, {count});
      const Node b = net.input("b", dtype, {count});
      net.results = {where(gt(a, b), tanh(a) * net.input("s", dtype, {}), cast(b, dtype))};
      net.check_bits(*cuda);
      const int widest = count < width ? 1 : width;
      CHECK(widths_of(net.graph, net.results, net.values(), true) ==
            std::map<std::string, int>{{"where", widest}});
    }
}

TEST_CASE("a long chain on CUDA is cut into launches of twelve ops at most") {
  const auto cuda = simulation();
  if (!cuda) return;
  Net net;
  Node x = net.input("x", DType::float32, {10});
  for (int i = 0; i < 30; ++i) x = relu(0.5 + x);
  net.results = {x};
  const auto sizes = net.sizes_of_launches(*cuda);
  CHECK(sizes.size() <= 6);
  CHECK(std::ranges::max(sizes) == 12);
  net.check_bits(*cuda);
}

TEST_CASE("a chain on CUDA ends where others read a value, and where shapes or kinds of numbers change") {
  const auto cuda = simulation();
  if (!cuda) return;
  Net net;
  const Node x = net.input("x", DType::float32, {4, 3});
  const Node row = net.input("row", DType::float32, {3});
  const Node read_twice = tanh(x);
  const Node summed = sum(read_twice, {.axes = {0}});
  net.results = {relu(read_twice + row), neg(summed), cast(cast(x, DType::int32), DType::float32),
                 square(cast(neg(x), DType::float64))};
  net.check_bits(*cuda);
  for (const std::size_t size : net.sizes_of_launches(*cuda)) CHECK(size <= 2);
}

TEST_CASE("chains on CUDA whose results are only stored share a launch") {
  const auto cuda = simulation();
  if (!cuda) return;
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
    CAPTURE(name_of(dtype));
    Net net;
    const Node s = net.input("s", dtype, {});
    for (std::int64_t i = 0; i < 70; ++i) {
      const std::string name = "x" + std::to_string(i);
      const Node x = net.input(name.c_str(), dtype, {i % 3 + 1, i + 1});
      net.results.push_back(i % 2 == 0 ? s * weighted_sum(x, 0.1 * static_cast<double>(i), x, 2) : tanh(x));
    }
    // One launch takes at most 64 ops.
    CHECK(net.sizes_of_launches(*cuda).size() == 2);
    net.check_bits(*cuda);
  }
}

TEST_CASE("chains on CUDA that share a launch follow the layout of each") {
  const auto cuda = simulation();
  if (!cuda) return;
  LayoutBackend backend(*cuda, in_channels_last);
  Net net;
  const Node images = net.input("images", DType::bfloat16, {2, 5, 3, 4});
  const Node weights = net.input("weights", DType::bfloat16, {7, 5, 1, 2});
  const Node row = net.input("row", DType::bfloat16, {9});
  for (const Node& node : {images, weights, row}) net.results.push_back(cast(node, DType::float32));
  const auto sizes = net.sizes_of_launches(backend);
  CHECK(std::ranges::count(sizes, 3U) == 1);
  net.check_bits(backend);
}

TEST_CASE("optimizers on CUDA write the values in 16 bits as well") {
  const auto cuda = simulation();
  if (!cuda) return;
  for (const DType narrow : {DType::bfloat16, DType::float16})
    for (const bool skips : {false, true})
      for (const std::string rule : {"sgd", "adam", "rms"}) {
        CAPTURE(name_of(narrow));
        CAPTURE(skips);
        CAPTURE(rule);
        Net net;
        const auto slice = [&](const char* name) { return net.input(name, DType::float32, {301}); };
        const Node value = slice("value");
        const Node grad = slice("grad");
        const Node state = slice("state");
        const Node square_state = square(slice("square"));
        const Node rate = net.graph.constant(Tensor::scalar(0.1).cast(DType::float32));
        const Node scale = net.graph.constant(Tensor::scalar(skips ? 0.0 : 2.0).cast(DType::float32));
        const Node one = net.graph.constant(Tensor::scalar(1.0).cast(DType::float32));
        if (rule == "rms") {
          const RmsResult next = rms_step(value, grad, {.square = square_state, .momentum = state}, rate,
                                          {.momentum = 0.9}, scale);
          net.results = {next.value, next.state.square, next.state.momentum, cast(next.value, narrow)};
        } else if (rule == "adam") {
          const AdamResult next = adam_step(value, grad, state, square_state, rate, one, {}, scale);
          net.results = {next.value, next.mean, next.square, cast(next.value, narrow)};
        } else {
          const SgdResult next = sgd_step(value, grad, state, rate, {.momentum = 0.9}, scale);
          net.results = {next.value, next.momentum, cast(next.value, narrow)};
        }
        CHECK(net.sizes_of_launches(*cuda).back() == 2);
        net.check_bits(*cuda);
      }
}

TEST_CASE(
    "pixels on CUDA become channels last in 16 bits at once, padded to eight, if a convolution reads them") {
  const auto cuda = simulation();
  if (!cuda) return;
  for (const std::int64_t channels : {1, 3, 4, 6, 8, 9}) {
    Net net;
    const Node pixels = net.input("pixels", DType::uint8, {2, channels, 5, 3});
    NormaliseImageOptions options{.scale = {{}, {}}};
    for (std::int64_t c = 0; c < channels; ++c) {
      options.scale.mean.push_back(0.1 * static_cast<double>(c));
      options.scale.stddev.push_back(0.5 + 0.1 * static_cast<double>(c));
    }
    const Node weights = net.input("weights", DType::bfloat16, {9, channels, 3, 3});
    const Node images = cast(normalise_image(pixels, options), DType::bfloat16);
    net.results = {conv2d(images, weights), images};
    CHECK(net.sizes_of_launches(*cuda).front() == 2);
    CHECK(net.layout_of_first_result(*cuda) == (channels < 8 ? "acdB8b" : "acdb"));
    net.check_bits(*cuda);
    net.results = {images};
    CHECK(net.layout_of_first_result(*cuda) == "abcd");
    net.check_bits(*cuda);
  }
}

}  // namespace plexaura::testing::cuda_chain_regions_test
