#include <algorithm>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "core/ops/conv2d.h"
#include "core/ops/reduce.h"
#include "tests/backends/cpu/fast/winograd_checks.h"

// Null in a program without OpenMP.
extern "C" [[gnu::weak]] void omp_set_num_threads(int);
extern "C" [[gnu::weak]] int omp_get_max_threads();

namespace plexaura::testing::winograd_weight_grad_test {

using namespace winograd;

namespace {

Node weight_grad(Graph& graph, DType dtype, const Case& of) {
  const Node x = graph.input("x", {dtype, of.x});
  Graph shapes;
  const Shape grad = conv2d(shapes.input("x", {dtype, of.x}),
                            shapes.input("weights", {dtype, {of.outputs, of.x[1], 3, 3}}), of.options)
                         .shape();
  return conv2d_weight_grad(x, graph.input("grad", {dtype, grad}), {3, 3}, of.options);
}

std::vector<double> exact_weight_grad(const Case& of) {
  return exact([&](Graph& graph, DType dtype) { return weight_grad(graph, dtype, of); });
}

Layout blocked_weights(std::int64_t lanes) { return Layout({0, 1, 2, 3}, {{1, lanes}, {0, lanes}}); }

// The gradients of the weights and, if the region has it, of the bias.
struct Found {
  Tensor weights;
  std::vector<double> bias;
};

Found run_region(const Graph& graph, const Region& region, const std::vector<Tensor>& values,
                 const Layout& weights, const std::vector<std::optional<Layout>>& images) {
  const auto cpu = make_cpu_backend();
  OnlyWinograd backend(*cpu, weights);
  RegionRun run(backend, graph, region, values, {.given = images});
  for (std::size_t i = 0; i < images.size(); ++i) CHECK(run.candidate().inputs[i] == images[i]);
  for (std::size_t i = 0; i < region.outputs.size(); ++i) run.output(i).spoil();
  run.launch();
  return {run.output().read(),
          region.outputs.size() == 2 ? run.output(1).read().to_doubles() : std::vector<double>{}};
}

Tensor result_of(const Node& node, const Layout& weights, const Layout& x, const Layout& grad) {
  return run_region(node.graph(), single(node.graph(), node.id()), drawn_inputs(node), weights, {x, grad})
      .weights;
}

Errors errors_of_case(const Case& of, const Layout& weights, const Layout& images) {
  Graph graph;
  const Node node = weight_grad(graph, DType::float32, of);
  return errors_of(result_of(node, weights, images, images), exact_weight_grad(of));
}

// One case has several passes over its tiles, with many threads too.
const Case of_several_passes{{9, 64, 60, 59}, 80, {.padding = {1, 1}}};

}  // namespace

TEST_CASE("gradients of weights by our Winograd kernels agree with the portable kernels in double") {
  std::vector<Case> cases;
  for (const auto& [height, width] : {std::pair{1, 1}, {3, 9}, {4, 4}, {7, 6}, {13, 8}})
    for (const std::int64_t padding : {1, 2})
      cases.push_back({{2, 16, height, width}, 32, {.padding = {padding, padding}}});
  cases.push_back({{2, 16, 9, 6}, 16, {}});
  cases.push_back({{3, 24, 8, 8}, 40, {.padding = {1, 1}}});
  cases.push_back({{1, 16, 5, 7}, 24, {.padding = {0, 3}, .padding_end = Size2d{4, 1}}});
  cases.push_back({{2, 144, 5, 5}, 160, {}});
  for (const Case& of : cases) {
    CAPTURE(to_string(of.x));
    CAPTURE(of.options.padding.h);
    for (const Layout& images : layouts) {
      CAPTURE(to_string(images));
      for (const Layout& weights : {blocked_weights(8), Layout::row_major(4), Layout({0, 2, 3, 1})})
        CHECK(errors_of_case(of, weights, images).largest < bound);
    }
  }
}

TEST_CASE("channels that fill no block have a Winograd gradient of weights in rows") {
  const Case of{{2, 17, 6, 7}, 21, {.padding = {1, 1}}};
  for (const std::int64_t block : {8, 16})
    CHECK(errors_of_case(of, Layout::row_major(4), blocked_channels(block)).largest < bound);
}

TEST_CASE("a Winograd gradient of weights reads each image in its own layout") {
  Graph graph;
  const Node node = weight_grad(graph, DType::float32, {{2, 32, 6, 7}, 16, {.padding = {1, 1}}});
  const Tensor expected = result_of(node, blocked_weights(16), layouts[1], layouts[1]);
  for (const Layout& x : layouts)
    for (const Layout& grad : layouts) CHECK(result_of(node, blocked_weights(8), x, grad) == expected);
}

TEST_CASE("the typical error of a Winograd gradient of weights does not grow with the number of tiles") {
  for (const Case& of : {Case{{1, 16, 8, 8}, 16, {.padding = {1, 1}}},
                         Case{{16, 16, 56, 56}, 16, {.padding = {1, 1}}}, of_several_passes})
    CHECK(errors_of_case(of, Layout::row_major(4), blocked_channels(16)).typical < 1.3e-6);
}

TEST_CASE("the Winograd gradient of weights takes that of the bias along, as exact as a sum of doubles") {
  Graph graph;
  const Node node = weight_grad(graph, DType::float32, of_several_passes);
  const Value grad = graph.record(node.id()).inputs[1];
  const Node bias = sum(Node(graph, grad), {.axes = {0, 2, 3}});
  const Region both{"conv2d_weight_grad+bias",
                    {node.id(), bias.id()},
                    graph.record(node.id()).inputs,
                    {{node.id(), 0}, {bias.id(), 0}}};
  const std::vector<Tensor> values = drawn_inputs(node);
  std::vector<double> expected(80);
  const std::vector<double> pixels = values[1].to_doubles();
  for (std::size_t i = 0; i < pixels.size(); ++i) expected[i / (60 * 59) % 80] += pixels[i];
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  const Tensor weights = result_of(node, blocked_weights(16), layouts[1], layouts[1]);
  for (const Layout& images : layouts) {
    const Found found = run_region(graph, both, values, blocked_weights(16), {images, images});
    CHECK(found.weights == weights);
    REQUIRE(found.bias.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(std::abs(found.bias[i] - expected[i]) < 2e-7 * largest);
  }
}

TEST_CASE("the number of threads changes no bit of a Winograd gradient of weights") {
  if (omp_set_num_threads == nullptr) return;
  const int threads = omp_get_max_threads();
  for (const Case& of : {of_several_passes, Case{{2, 16, 9, 9}, 80, {}}, Case{{3, 200, 5, 5}, 144, {}}}) {
    Graph graph;
    const Node node = weight_grad(graph, DType::float32, of);
    omp_set_num_threads(1);
    const Tensor alone = result_of(node, Layout::row_major(4), layouts[0], layouts[0]);
    for (const int count : {2, 3, 7}) {
      omp_set_num_threads(count);
      CHECK(result_of(node, Layout::row_major(4), layouts[0], layouts[0]) == alone);
    }
    omp_set_num_threads(threads);
  }
}

TEST_CASE("a number that is not finite makes the windows of its channel NaN, and no others") {
  Graph graph;
  const Node node = weight_grad(graph, DType::float32, {{1, 16, 12, 12}, 21, {.padding = {1, 1}}});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<Tensor> values = drawn_inputs(node);
    values[0].as<float>()[3 * 144 + 5 * 12 + 6] = bad;  // channel 3
    const Tensor result = run_region(graph, single(graph, node.id()), values, Layout::row_major(4),
                                     {blocked_channels(8), blocked_channels(8)})
                              .weights;
    for (std::int64_t i = 0; i < result.shape().elements(); ++i)
      CHECK(std::isfinite(result.as<float>()[static_cast<std::size_t>(i)]) != (i / 9 % 16 == 3));
  }
}

TEST_CASE(
    "Winograd gradients of weights are offered for windows of 3x3 and stride 1, and no estimate takes them") {
  const auto offered = [](DType dtype, const Shape& x, std::int64_t outputs, Size2d kernel,
                          const Conv2dOptions& options) {
    Graph graph;
    const Node images = graph.input("x", {dtype, x});
    const Shape weights{outputs, x[1] / options.groups, kernel.h, kernel.w};
    const Shape grad = conv2d(images, graph.input("w", {dtype, weights}), options).shape();
    std::vector<Candidate> candidates =
        offers(conv2d_weight_grad(images, graph.input("grad", {dtype, grad}), kernel, options));
    std::erase_if(candidates, [](const Candidate& candidate) { return candidate.implementation != name; });
    return candidates;
  };
  const Shape x{1, 32, 9, 9};
  const std::vector<Candidate> all = offered(DType::float32, x, 16, {3, 3}, {});
  CHECK(all.size() == 4);
  for (const Candidate& candidate : all) CHECK_FALSE(candidate.has_estimate());
  // Blocks of weights would have padding.
  CHECK(offered(DType::float32, {1, 20, 9, 9}, 20, {3, 3}, {}).size() == 2);
  CHECK(offered(DType::float32, x, 16, {3, 3}, {.stride = {2, 1}}).empty());
  CHECK(offered(DType::float32, x, 16, {3, 3}, {.dilation = {1, 2}}).empty());
  CHECK(offered(DType::float32, x, 32, {3, 3}, {.groups = 2}).empty());
  CHECK(offered(DType::float32, x, 16, {3, 2}, {}).empty());
  CHECK(offered(DType::float32, x, 8, {3, 3}, {}).empty());
  CHECK(offered(DType::float64, x, 16, {3, 3}, {}).empty());
  CHECK(offered(DType::bfloat16, x, 16, {3, 3}, {}).empty());
}

}  // namespace plexaura::testing::winograd_weight_grad_test
