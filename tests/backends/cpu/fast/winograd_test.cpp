#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "core/ops/conv2d.h"
#include "tests/backends/cpu/fast/winograd_checks.h"

// Null in a program without OpenMP.
extern "C" [[gnu::weak]] void omp_set_num_threads(int);
extern "C" [[gnu::weak]] int omp_get_max_threads();

namespace plexaura::testing::winograd_test {

using namespace winograd;

namespace {

Node forward(Graph& graph, DType dtype, const Case& of) {
  const Node x = graph.input("x", {dtype, of.x});
  const Node weights = graph.input("weights", {dtype, {of.outputs, of.x[1], 3, 3}});
  if (!of.has_bias) return conv2d(x, weights, of.options);
  return conv2d(x, weights, graph.input("bias", {dtype, {of.outputs}}), of.options);
}

Node input_grad(Graph& graph, DType dtype, const Case& of) {
  Graph shapes;
  const Shape grad = forward(shapes, dtype, of).shape();
  return conv2d_input_grad(graph.input("weights", {dtype, {of.outputs, of.x[1], 3, 3}}),
                           graph.input("grad", {dtype, grad}), {of.x[2], of.x[3]}, of.options);
}

using Build = Node (*)(Graph& graph, DType dtype, const Case& of);

// Runs the kernel with this layout of the result. Returns the result, and checks that its padding is zero.
Tensor result_of(const Node& node, const Layout& result, const std::vector<Tensor>& values,
                 const std::vector<std::optional<Layout>>& given = {}) {
  const auto cpu = make_cpu_backend();
  OnlyWinograd backend(*cpu, result);
  RegionRun run(backend, node.graph(), single(node.graph(), node.id()), values, {.given = given});
  for (std::size_t i = 0; i < given.size(); ++i) CHECK(run.candidate().inputs[i] == given[i]);
  run.output().spoil();
  run.launch();
  Tensor value = run.output().read();
  DeviceValue expected(backend, value, result);
  CHECK(run.output().read_bytes() == expected.read_bytes());
  return value;
}

std::vector<double> exact(Build build, const Case& of) {
  return winograd::exact([&](Graph& graph, DType dtype) { return build(graph, dtype, of); });
}

}  // namespace

TEST_CASE("convolutions by our Winograd kernels agree with the portable kernels in double") {
  std::vector<Case> cases;
  for (const auto& [height, width] : {std::pair{1, 1}, {3, 9}, {4, 4}, {7, 6}, {13, 8}})
    for (const std::int64_t padding : {1, 2})
      cases.push_back({{2, 16, height, width}, 32, {.padding = {padding, padding}}});
  cases.push_back({{2, 16, 9, 6}, 16, {}, true});
  cases.push_back({{3, 24, 8, 8}, 40, {.padding = {1, 1}}, true});
  cases.push_back({{1, 16, 5, 7}, 24, {.padding = {0, 3}, .padding_end = Size2d{4, 1}}});
  cases.push_back({{1, 144, 30, 31}, 16, {.padding = {1, 1}}});
  for (const Case& of : cases) {
    CAPTURE(to_string(of.x));
    CAPTURE(of.options.padding.h);
    for (const Build build : {forward, input_grad}) {
      const std::vector<double> expected = exact(build, of);
      for (const Layout& layout : layouts) {
        CAPTURE(to_string(layout));
        Graph graph;
        const Node node = build(graph, DType::float32, of);
        CHECK(errors_of(result_of(node, layout, drawn_inputs(node)), expected).largest < bound);
      }
    }
  }
}

TEST_CASE("channels that fill a block in part are padded with zeros in a Winograd kernel too") {
  const Case of{{2, 17, 6, 7}, 21, {.padding = {1, 1}}, true};
  for (const Build build : {forward, input_grad})
    for (const std::int64_t block : {8, 16}) {
      Graph graph;
      const Node node = build(graph, DType::float32, of);
      const Tensor found = result_of(node, blocked_channels(block), drawn_inputs(node));
      CHECK(errors_of(found, exact(build, of)).largest < bound);
    }
}

TEST_CASE("a Winograd kernel reads the source and the weights in the layouts in which they are") {
  const Case of{{2, 32, 6, 7}, 16, {.padding = {1, 1}}};
  for (const Build build : {forward, input_grad}) {
    Graph graph;
    const Node node = build(graph, DType::float32, of);
    const std::vector<Tensor> values = drawn_inputs(node);
    const Tensor expected = result_of(node, blocked_channels(16), values);
    for (const Layout& source : layouts)
      for (const Layout& weights :
           {Layout::row_major(4), Layout({0, 2, 3, 1}), Layout({0, 1, 2, 3}, {{1, 8}, {0, 8}}),
            Layout({1, 0, 2, 3}, {{0, 16}})}) {
        CAPTURE(to_string(source));
        CAPTURE(to_string(weights));
        std::vector<std::optional<Layout>> given{source, weights};
        if (build == input_grad) std::ranges::reverse(given);
        CHECK(result_of(node, blocked_channels(8), values, given) == expected);
      }
  }
}

TEST_CASE("a Winograd kernel of a forward pass alone reads weights in vectors of the result's channels") {
  for (const Build build : {forward, input_grad})
    for (const Case& of : {Case{{2, 24, 6, 7}, 40, {.padding = {1, 1}}}, Case{{2, 24, 9, 9}, 40, {}}}) {
      Graph graph(Mode::inference);
      const Node node = build(graph, DType::float32, of);
      const std::size_t axis = build == forward ? 0 : 1;
      const auto cpu = make_cpu_backend();
      for (const Layout& layout : layouts) {
        OnlyWinograd backend(*cpu, layout);
        RegionRun run(backend, graph, single(graph, node.id()), drawn_inputs(node));
        const std::size_t weights = build == forward ? 1 : 0;
        CHECK(run.candidate().inputs[weights].blocks().back().axis == static_cast<std::int64_t>(axis));
        run.launch();
        CHECK(errors_of(run.output().read(), exact(build, of)).largest < bound);
      }
    }
}

TEST_CASE("the typical error of a Winograd kernel is near 1e-6 and does not grow with the channels") {
  for (const std::int64_t channels : {64, 512}) {
    const Case of{{1, channels, 8, 8}, 16, {.padding = {1, 1}}};
    Graph graph;
    const Node node = forward(graph, DType::float32, of);
    CHECK(errors_of(result_of(node, blocked_channels(16), drawn_inputs(node)), exact(forward, of)).typical <
          1.3e-6);
  }
}

TEST_CASE("a Winograd gradient of a source that is larger than the result agrees with the portable kernels") {
  // Tiles of the result are added up where there are fewer of them and those of a sample fit a product: not in the last
  // case, with 81 tiles. The third one has several passes over its tiles with few threads.
  for (const Case& of :
       {Case{{2, 16, 5, 5}, 16, {}}, Case{{9, 17, 11, 13}, 21, {}}, Case{{70, 144, 13, 13}, 160, {}},
        Case{{3, 24, 9, 10}, 40, {.padding = {0, 1}, .padding_end = Size2d{1, 0}}},
        Case{{1, 16, 33, 33}, 16, {}}, Case{{1, 16, 37, 37}, 16, {}}}) {
    CAPTURE(to_string(of.x));
    const std::vector<double> expected = exact(input_grad, of);
    for (const Layout& layout : layouts) {
      if (layout == channels_last() && of.x[1] % 8 != 0) continue;
      CAPTURE(to_string(layout));
      Graph graph;
      const Node node = input_grad(graph, DType::float32, of);
      const Errors errors = errors_of(result_of(node, layout, drawn_inputs(node)), expected);
      CHECK(errors.largest < bound);
      CHECK(errors.typical < 1.3e-6);
    }
  }
}

TEST_CASE(
    "a number that is not finite makes the 6x6 pixels NaN that its tile of a gradient adds to, and no "
    "others") {
  Graph graph;
  const Node node = input_grad(graph, DType::float32, {{2, 17, 9, 9}, 21, {}});
  std::vector<Tensor> values = drawn_inputs(node);
  values[1].as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const Tensor result = result_of(node, blocked_channels(8), values);
  for (std::int64_t i = 0; i < result.shape().elements(); ++i) {
    // The tile adds to 6x6 pixels, of which the last row and column depend on its own last ones only.
    const bool is_spoiled = i < 17 * 81 && i / 9 % 9 < 5 && i % 9 < 5;
    CHECK(std::isfinite(result.as<float>()[static_cast<std::size_t>(i)]) != is_spoiled);
  }
}

TEST_CASE("the number of threads changes no bit of a Winograd convolution") {
  if (omp_set_num_threads == nullptr) return;
  const int threads = omp_get_max_threads();
  // The first one has several passes over its tiles with few threads, and one with seven.
  for (const Case& of : {Case{{1, 256, 40, 40}, 32, {.padding = {1, 1}}}, Case{{2, 16, 9, 9}, 80, {}},
                         Case{{70, 32, 13, 13}, 144, {}}})
    for (const Build build : {forward, input_grad}) {
      Graph graph;
      const Node node = build(graph, DType::float32, of);
      const std::vector<Tensor> values = drawn_inputs(node);
      omp_set_num_threads(1);
      const Tensor alone = result_of(node, blocked_channels(16), values);
      for (const int count : {2, 3, 7}) {
        omp_set_num_threads(count);
        CHECK(result_of(node, blocked_channels(16), values) == alone);
      }
      omp_set_num_threads(threads);
    }
}

TEST_CASE("a number that is not finite makes its tile NaN in a Winograd kernel, and no other tile") {
  Graph graph;
  const Node node = forward(graph, DType::float32, {{1, 16, 12, 12}, 21, {.padding = {1, 1}}});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<Tensor> values = drawn_inputs(node);
    values[0].as<float>()[5 * 12 + 6] = bad;  // only the tile from (4, 4) on reads it
    const Tensor result = result_of(node, blocked_channels(8), values);
    for (std::int64_t i = 0; i < result.shape().elements(); ++i) {
      const std::int64_t row = i / 12 % 12;
      const std::int64_t column = i % 12;
      const bool is_in_tile = row >= 4 && row < 8 && column >= 4 && column < 8;
      CHECK(std::isfinite(result.as<float>()[static_cast<std::size_t>(i)]) != is_in_tile);
    }
  }
}

TEST_CASE("a Winograd kernel replaces denormals by zero, as other convolutions do") {
  Graph graph;
  const Node node = forward(graph, DType::float32, {{1, 32, 12, 12}, 32, {.padding = {1, 1}}});
  std::vector<Tensor> values = drawn_inputs(node);
  std::ranges::fill(values[0].as<float>(), 1e-40F);
  const Tensor result = result_of(node, blocked_channels(8), values);
  CHECK(std::ranges::all_of(result.as<float>(), [](float value) { return value == 0; }));
}

TEST_CASE("Winograd kernels are offered for windows of 3x3 and stride 1, and no estimate takes them") {
  const auto offered = [](DType dtype, const Shape& x, const Shape& weights, const Conv2dOptions& options) {
    Graph graph;
    std::vector<Candidate> candidates =
        offers(conv2d(graph.input("x", {dtype, x}), graph.input("w", {dtype, weights}), options));
    std::erase_if(candidates, [](const Candidate& candidate) { return candidate.implementation != name; });
    return candidates;
  };
  const Shape x{1, 32, 9, 9};
  const Shape weights{16, 32, 3, 3};
  const std::vector<Candidate> all = offered(DType::float32, x, weights, {});
  CHECK(all.size() == 3);
  for (const Candidate& candidate : all) CHECK_FALSE(candidate.has_estimate());
  // Twenty channels in a row are no whole vectors, so that channels last are not offered.
  CHECK(offered(DType::float32, {1, 20, 9, 9}, {20, 20, 3, 3}, {}).size() == 2);
  CHECK(offered(DType::float32, x, weights, {.stride = {2, 1}}).empty());
  CHECK(offered(DType::float32, x, weights, {.dilation = {1, 2}}).empty());
  CHECK(offered(DType::float32, x, {16, 16, 3, 3}, {.groups = 2}).empty());
  CHECK(offered(DType::float32, x, {16, 32, 3, 2}, {}).empty());
  CHECK(offered(DType::float32, x, {8, 32, 3, 3}, {}).empty());
  CHECK(offered(DType::float32, {1, 8, 9, 9}, {16, 8, 3, 3}, {}).empty());
  CHECK(offered(DType::float64, x, weights, {}).empty());
  CHECK(offered(DType::bfloat16, x, weights, {}).empty());
  CHECK(offered(DType::float32, {0, 32, 9, 9}, weights, {}).empty());
}

}  // namespace plexaura::testing::winograd_test
