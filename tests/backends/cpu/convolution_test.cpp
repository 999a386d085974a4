#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/device/forwarding_backend.h"
#include "core/host/costs.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::convolution_test {

namespace {

// A float32 sum of n products of numbers below 1 has an error of at most n x 6e-8 of its terms, and typically
// of the root of that. The largest n here is 17 x 9 x 8 x 8, in the weight gradients.
constexpr double bound = 2e-6;

struct Case {
  Shape x;
  std::int64_t outputs;
  Size2d kernel;
  Conv2dOptions options;
};

const std::vector<Case> cases{
    {{2, 3, 9, 11}, 17, {3, 3}, {.padding = {1, 1}}},
    {{2, 17, 8, 8}, 3, {3, 3}, {}},
    {{3, 16, 7, 5}, 32, {1, 1}, {}},
    {{1, 32, 9, 9}, 16, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
    {{2, 1, 12, 12}, 8, {3, 3}, {}},
    {{2, 16, 13, 9}, 16, {3, 2}, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 1}}},
    {{2, 12, 6, 6}, 18, {3, 3}, {.padding = {1, 1}, .groups = 3}},
    {{2, 16, 6, 6}, 16, {3, 3}, {.padding = {1, 1}, .groups = 16}},
    {{2, 3, 33, 33}, 64, {7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
};

std::vector<Node> forward_and_backward(Graph& graph, DType dtype, const Case& of) {
  const Node x = graph.input("x", {dtype, of.x});
  const Node weights =
      graph.input("weights", {dtype, {of.outputs, of.x[1] / of.options.groups, of.kernel.h, of.kernel.w}});
  const Node bias = graph.input("bias", {dtype, {of.outputs}});
  const Node y = relu(conv2d(x, weights, bias, of.options));
  const Node grad = where(gt(y, 0), graph.input("grad", {dtype, y.shape()}), 0);
  return {y, conv2d_input_grad(weights, grad, spatial(of.x), of.options),
          conv2d_weight_grad(x, grad, of.kernel, of.options), sum(grad, {.axes = {0, 2, 3}})};
}

// The CPU backend that offers only the library's Winograd kernels where it has them.
class WithWinograd final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates = inner().propose(query);
    const auto transforms = [](const Candidate& candidate) {
      return candidate.implementation.starts_with("onednn") &&
             candidate.implementation.find("wino") != std::string::npos;
    };
    if (std::ranges::any_of(candidates, transforms))
      std::erase_if(candidates, [&](const Candidate& candidate) { return !transforms(candidate); });
    for (Candidate& candidate : candidates)
      if (transforms(candidate)) candidate.seconds = 0;
    return candidates;
  }
};

// Version 2 of the library has them on processors with AVX-512.
bool has_winograd() {
  const std::string instructions = cpu_instructions();
  return cpu_libraries().starts_with("oneDNN 2") && instructions.find("avx512_core") != std::string::npos;
}

}  // namespace

TEST_CASE("the library's convolutions by Winograd's tiles agree too, and are taken by no estimate") {
  const auto cpu = make_cpu_backend();
  WithWinograd backend(*cpu);
  const Case of{{2, 32, 14, 14}, 48, {3, 3}, {.padding = {1, 1}}};
  const auto build = [&](Graph& graph, DType dtype) { return forward_and_backward(graph, dtype, of); };
  const Agreement result = agreement(build, {.backend = &backend});
  CHECK(result.worst() < bound);
  if (has_winograd()) CHECK(result.uses("wino"));
  CHECK(!agreement(build).uses("wino"));
}

TEST_CASE("convolutions and their gradients agree with the portable kernels in double") {
  for (const Case& of : cases) {
    CAPTURE(to_string(of.x));
    const Agreement result =
        agreement([&](Graph& graph, DType dtype) { return forward_and_backward(graph, dtype, of); });
    CHECK(result.worst() < bound);
  }
}

TEST_CASE("convolutions of doubles multiply tiles with vectors, and agree with the portable kernels") {
  const auto check = [](const BuildGraph& build) {
    const Agreement result = agreement(build, {.dtype = DType::float64});
    CAPTURE(result.program);
    CHECK_FALSE(result.uses("portable"));
    CHECK(result.worst() < bound_of_doubles);
  };
  for (const Case& of : cases)
    check([&](Graph& graph, DType dtype) { return forward_and_backward(graph, dtype, of); });
  check([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {2, 6, 4, 9, 5}});
    const Node weights = graph.input("weights", {dtype, {38, 3, 3, 2, 3}});
    const Node y = conv3d(x, weights, {.padding = 1, .groups = 2});
    const Node grad = graph.input("grad", y.type());
    std::vector<Node> found = vjp(std::vector{y}, std::vector{grad}, std::vector{x, weights});
    found.push_back(y);
    return found;
  });
}

TEST_CASE("the weights' gradient takes that of the bias along") {
  const Agreement result =
      agreement([&](Graph& graph, DType dtype) { return forward_and_backward(graph, dtype, cases[2]); });
  CAPTURE(result.program);
  CHECK(result.uses("conv2d_weight_grad+bias") == has_onednn());
}

TEST_CASE("the gradient of a bias is added up as exactly as a sum by itself, by the kernel that is chosen") {
  const std::vector<Case> large{{{8, 4, 32, 32}, 16, {1, 1}, {}},
                                {{8, 17, 32, 32}, 20, {1, 1}, {}},
                                {{8, 16, 64, 64}, 16, {1, 1}, {.stride = {2, 2}}},
                                {{8, 1, 32, 32}, 16, {3, 3}, {.padding = {1, 1}}},
                                {{8, 16, 32, 32}, 16, {3, 3}, {.padding = {1, 1}}},
                                {{8, 17, 32, 32}, 20, {3, 3}, {.padding = {1, 1}}},
                                {{8, 3, 64, 64}, 16, {7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
                                {{8, 12, 32, 32}, 18, {3, 3}, {.padding = {1, 1}, .groups = 3}},
                                {{8, 16, 32, 32}, 16, {3, 3}, {.padding = {1, 1}, .groups = 16}}};
  for (const Case& of : large) {
    CAPTURE(to_string(of.x));
    CAPTURE(of.kernel.h);
    CAPTURE(of.options.groups);
    const Agreement result = agreement(
        [&](Graph& graph, DType dtype) -> std::vector<Node> {
          const Node x = graph.input("x", {dtype, of.x});
          const Node weights = graph.input(
              "weights", {dtype, {of.outputs, of.x[1] / of.options.groups, of.kernel.h, of.kernel.w}});
          const Node y = conv2d(x, weights, of.options);
          const Node grad = graph.input("grad", {dtype, y.shape()});
          return {conv2d_weight_grad(x, grad, of.kernel, of.options), sum(grad, {.axes = {0, 2, 3}})};
        },
        {.low = 0});
    CAPTURE(result.program);
    CHECK(result.uses("conv2d_weight_grad+bias") == has_onednn());
    CHECK(result.errors[1] < 2e-7);
  }
}

// Channels, groups and windows that some of oneDNN's fastest kernels refuse.
std::vector<Case> awkward_cases() {
  std::vector<Case> all;
  for (const std::int64_t in : {1, 3, 5, 8, 12, 17, 24})
    for (const std::int64_t out : {1, 5, 8, 12, 24})
      all.push_back({{2, in, 7, 9}, out, {3, 3}, {.padding = {1, 1}}});
  for (const std::int64_t channels : {3, 8, 12, 17, 24}) {
    all.push_back({{1, channels, 9, 7}, channels, {3, 3}, {.padding = {1, 1}, .groups = channels}});
    all.push_back({{2, channels, 9, 7},
                   2 * channels,
                   {5, 5},
                   {.stride = {2, 2}, .padding = {2, 2}, .groups = channels}});
    all.push_back({{1, channels, 11, 9}, 12, {3, 3}, {.stride = {2, 2}, .dilation = {2, 3}}});
    all.push_back({{1, channels, 3, 4}, 8, {7, 5}, {.padding = {3, 2}}});
  }
  all.push_back({{2, 24, 6, 6}, 12, {1, 1}, {.groups = 4}});
  all.push_back({{2, 24, 6, 6}, 36, {3, 3}, {.padding = {2, 2}, .dilation = {2, 2}, .groups = 2}});
  all.push_back({{1, 32, 6, 6}, 64, {3, 3}, {.groups = 2}});
  return all;
}

TEST_CASE("convolutions of any size agree, and none is left to slow code") {
  for (const Case& of : awkward_cases())
    for (const Mode mode : {Mode::train, Mode::inference}) {
      CAPTURE(to_string(of.x));
      CAPTURE(of.outputs);
      CAPTURE(of.kernel.h);
      CAPTURE(of.options.groups);
      const Agreement result = agreement(
          [&](Graph& graph, DType dtype) { return forward_and_backward(graph, dtype, of); }, {.mode = mode});
      CAPTURE(result.program);
      CHECK(result.worst() < bound);
      CHECK_FALSE(result.uses("ref"));
      CHECK(result.uses("portable") != has_onednn());
    }
}

TEST_CASE("a NaN goes through a convolution and the ReLU behind it") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = log(graph.input("x", {dtype, {1, 8, 6, 6}}));  // log() gives NaN where x is below 0
    const Node weights = graph.input("w", {dtype, {4, 8, 1, 1}});
    return {relu(conv2d(x, weights, graph.input("b", {dtype, {4}})))};
  });
  CHECK(result.worst() < bound);
}

TEST_CASE("the padding of a convolution's results is zero") {
  for (const std::int64_t channels : {1, 3, 17}) {
    CAPTURE(channels);
    const TensorType x{DType::float32, {2, channels, 6, 6}};
    const auto conv = [&](Graph& graph, DType dtype) -> std::vector<Node> {
      return {
          conv2d(graph.input("x", {dtype, x.shape}), graph.input("w", {dtype, {channels, channels, 3, 3}}))};
    };
    const auto data = [&](Graph& graph, DType dtype) -> std::vector<Node> {
      return {conv2d_input_grad(graph.input("w", {dtype, {channels, channels, 3, 3}}),
                                graph.input("g", {dtype, {2, channels, 4, 4}}), {6, 6}, {})};
    };
    const auto weights = [&](Graph& graph, DType dtype) -> std::vector<Node> {
      return {conv2d_weight_grad(graph.input("x", {dtype, x.shape}),
                                 graph.input("g", {dtype, {2, channels, 4, 4}}), {3, 3}, {})};
    };
    for (const auto& build : {BuildGraph(conv), BuildGraph(data), BuildGraph(weights)}) {
      const Agreement result = agreement_of_node(build, {blocked_channels(16), blocked_channels(16)});
      CHECK(result.worst() < bound);
    }
  }
}

TEST_CASE("a pointwise input gradient is added to the other branch's") {
  for (const bool first : {true, false}) {
    const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
      const Node weights = graph.input("weights", {dtype, {32, 17, 1, 1}});
      const Node grad = graph.input("grad", {dtype, {2, 32, 5, 5}});
      const Node side = neg(graph.input("side", {dtype, {2, 17, 5, 5}}));
      const Node main = conv2d_input_grad(weights, grad, {5, 5}, {});
      return {first ? main + side : side + main};
    });
    CAPTURE(result.program);
    CHECK(result.uses("+ sum") == has_onednn());
    CHECK(result.worst() < bound);
  }
}

TEST_CASE("only a pointwise input gradient is added: any other reads several places") {
  const std::vector<std::pair<Size2d, Conv2dOptions>> windows{{{3, 3}, {}},
                                                              {{3, 1}, {}},
                                                              {{1, 3}, {}},
                                                              {{1, 1}, {.stride = {2, 2}}},
                                                              {{1, 1}, {.padding = {1, 1}}},
                                                              {{1, 1}, {.groups = 2}}};
  for (const auto& [kernel, options] : windows) {
    CAPTURE(kernel.h);
    CAPTURE(kernel.w);
    const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
      const Node x = graph.input("x", {dtype, {2, 16, 7, 7}});
      const Node weights = graph.input("weights", {dtype, {32, 16 / options.groups, kernel.h, kernel.w}});
      const Node y = conv2d(x, weights, options);
      return {conv2d_input_grad(weights, y, {7, 7}, options) + neg(x)};
    });
    CAPTURE(result.program);
    CHECK_FALSE(result.uses("conv2d_input_grad+add"));
    CHECK(result.worst() < bound);
  }
}

TEST_CASE("a convolution is offered row by row, with channels last and in blocks of channels") {
  if (!has_onednn()) return;
  const auto is_offered = [](const Node& node, const auto& is_wanted) {
    return std::ranges::any_of(offers(node), [&](const Candidate& of) { return is_wanted(of.outputs[0]); });
  };
  const auto in_blocks = [](const Layout& layout) {
    return layout.block_of(1) == 8 || layout.block_of(1) == 16;
  };
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 20, 8, 8}});
  const Node whole = conv2d(x, graph.input("w", {DType::float32, {24, 20, 3, 3}}));
  CHECK(is_offered(whole, [](const Layout& layout) { return layout.is_row_major(); }));
  CHECK(is_offered(whole, [](const Layout& layout) { return layout == channels_last(); }));
  CHECK(is_offered(whole, in_blocks));
  const Node channels = graph.input("channels", {DType::float32, {2, 16, 8, 8}});
  const Node by_itself = graph.input("by itself", {DType::float32, {16, 1, 3, 3}});
  CHECK(is_offered(conv2d(channels, by_itself, {.groups = 16}), in_blocks));
}

TEST_CASE("no convolution is expected to be faster than its operations allow") {
  for (const std::int64_t channels : {8, 20, 64}) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {2, channels, 8, 8}});
    const Node y = conv2d(x, graph.input("w", {DType::float32, {channels, channels, 3, 3}}));
    const double operations = 2.0 * static_cast<double>(y.shape().elements() * channels * 9);
    for (const Candidate& candidate : offers(y)) {
      CAPTURE(candidate.implementation);
      const bool by_columns = candidate.implementation.find("gemm") != std::string::npos;
      CHECK(candidate.seconds >=
            operations / (by_columns ? costs::operations_on_columns : costs::operations));
    }
  }
}

TEST_CASE("channels that fill a part of a vector are expected to take as long as if they filled it") {
  if (!has_onednn()) return;
  constexpr std::int64_t channels = 20;
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, channels, 8, 8}});
  const Node y = conv2d(x, graph.input("w", {DType::float32, {channels, channels, 3, 3}}));
  const auto operations = [&](std::int64_t in, std::int64_t out) {
    return 2.0 * static_cast<double>(y.shape().elements() * 9 * in * out) / static_cast<double>(channels);
  };
  const auto seconds_of = [&](const auto& is_wanted) {
    // Winograd's candidates have no estimate, which is written as an infinite time.
    for (const Candidate& candidate : offers(y))
      if (std::isfinite(candidate.seconds) && candidate.implementation.find("gemm") == std::string::npos &&
          is_wanted(candidate.outputs[0]))
        return candidate.seconds;
    return 0.0;
  };
  const bool are_wide = seconds_of([](const Layout& layout) { return layout.block_of(1) == 16; }) > 0;
  const std::int64_t block = are_wide ? 16 : 8;
  const std::int64_t filled = (channels + block - 1) / block * block;
  const double in_blocks = seconds_of([&](const Layout& layout) { return layout.block_of(1) == block; });
  CHECK(in_blocks >= operations(filled, filled) / costs::operations);
  CHECK(in_blocks < 2 * operations(filled, filled) / costs::operations);
  // With channels last, only the output channels are rounded up to whole vectors.
  const double last = seconds_of([](const Layout& layout) { return layout == channels_last(); });
  CHECK((last == 0 || last >= operations(channels, filled) / costs::operations));
}

TEST_CASE("the library is offered for 16 bits where the processor has instructions for them") {
  if (!has_onednn() || cpu_instructions().find("avx512_core") == std::string::npos) return;
  Graph graph;
  const Node x = graph.input("x", {DType::bfloat16, {2, 32, 8, 8}});
  const Node y = conv2d(x, graph.input("w", {DType::bfloat16, {32, 32, 3, 3}}));
  CHECK(std::ranges::any_of(offers(y),
                            [](const Candidate& of) { return of.implementation.starts_with("onednn"); }));
}

TEST_CASE("an empty batch is left to the portable kernels") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    return {conv2d(graph.input("x", {dtype, {0, 3, 4, 4}}), graph.input("w", {dtype, {2, 3, 3, 3}}))};
  });
  CHECK(result.worst() == 0);
}

TEST_CASE("inference convolutions may choose other weights") {
  const Agreement result = agreement(
      [](Graph& graph, DType dtype) -> std::vector<Node> {
        return {conv2d(graph.input("x", {dtype, {1, 16, 8, 8}}), graph.input("w", {dtype, {64, 16, 3, 3}}))};
      },
      {.mode = Mode::inference});
  CHECK(result.worst() < bound);
}

}  // namespace plexaura::testing::convolution_test
