#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/device/forwarding_backend.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/cases.h"

namespace plexaura::testing::widened_source_test {

namespace {

using Build = std::function<Node(const Node& x, const Node& y)>;

bool computes_in_float32(const Candidate& candidate) {
  return candidate.implementation.ends_with(" in float32");
}

// An op as that of a user which refuses float32.
class OnlyHalf final : public OpOf<OnlyHalf> {
 public:
  std::string_view name() const override { return "only_half"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (inputs[0].dtype != DType::bfloat16) throw RuleError("takes bfloat16 only");
    return {inputs[0]};
  }
  void compute(const HostCall&) const {}
};

// Half a unit in the last place, relative to the largest number of a binade.
double rounding(DType dtype) { return dtype == DType::bfloat16 ? 0x1p-8 : 0x1p-11; }

double largest_error(const Tensor& found, const Tensor& exact) {
  const std::vector<double> a = found.to_doubles();
  const std::vector<double> b = exact.to_doubles();
  double error = 0;
  double scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error = std::max(error, std::isnan(a[i]) ? HUGE_VAL : std::abs(a[i] - b[i]));
    scale = std::max(scale, std::abs(b[i]));
  }
  return error / scale;
}

// Compares build(x, y) and its two gradients with the same in float64, from the same inputs of 16 bits. Each result may
// be rounded once.
void check_one_rounding(const Shape& x_shape, const Shape& y_shape, const Build& build, bool keep_all = true,
                        Backend* chosen = nullptr) {
  const auto cpu = make_cpu_backend();
  Backend* const backend = chosen == nullptr ? cpu.get() : chosen;
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    CAPTURE(name_of(dtype));
    Graph graph;
    const Node x = graph.input("x", {dtype, x_shape});
    const Node y = graph.input("y", {dtype, y_shape});
    const Node result = build(x, y);
    const Node factor = graph.input("factor", result.type());
    std::vector<Node> wanted = gradients(sum(cast(result * factor, DType::float32)), {x, y});
    wanted.push_back(result);
    const std::vector<Node> wide{cast(x, DType::float64), cast(y, DType::float64)};
    const Node exact = build(wide[0], wide[1]);
    for (const Node& gradient : gradients(sum(exact * cast(factor, DType::float64)), wide))
      wanted.push_back(gradient);
    wanted.push_back(exact);
    Runner run(graph, wanted, *backend, {.keep_all = keep_all});
    const std::vector<Tensor> values =
        run({drawn(x.type(), "x"), drawn(y.type(), "y"), drawn(factor.type(), "factor")});
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(largest_error(values[i], values[i + 3]) < rounding(dtype) * 1.01);
    if (keep_all) CHECK(run.padding().failures.empty());
  }
}

const std::string winograd = "fast winograd in float32";

// The CPU backend, but where Winograd's kernels are offered in 16 bits, it offers only these. They have no estimates,
// so that otherwise only measurements choose them.
class PrefersWinograd final : public ForwardingBackend {
 public:
  explicit PrefersWinograd(Backend& cpu) : ForwardingBackend(cpu) {}
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> all = inner().propose(query);
    std::vector<Candidate> found;
    for (Candidate& candidate : all)
      if (candidate.implementation == winograd) found.push_back(candidate);
    for (Candidate& candidate : found) candidate.seconds = 1e-6;
    calls_ += found.empty() ? 0 : 1;
    return found.empty() ? all : found;
  }
  int calls() const { return calls_; }

 private:
  mutable int calls_ = 0;
};

// Checks that the backend's results have the bits of the portable kernels.
void check_portable_bits(const Shape& shape, const std::function<std::vector<Node>(const Node& x)>& build) {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    CAPTURE(name_of(dtype));
    Graph graph;
    const Node x = graph.input("x", {dtype, shape});
    std::vector<Node> wanted = build(x);
    CHECK(std::ranges::any_of(offers(wanted[0]), computes_in_float32));
    wanted.push_back(gradients(sum(cast(wanted[0] * wanted[0], DType::float32)), {x})[0]);
    const std::vector<Tensor> inputs{drawn(x.type(), "x")};
    const StepBlock block{.step = 2, .seed = 5};
    CHECK(Runner(graph, wanted, *fast)(inputs, block) == Runner(graph, wanted, *portable)(inputs, block));
  }
}

}  // namespace

TEST_CASE("convolutions of 16 bits are computed in float32 and rounded once") {
  if (!has_onednn()) return;
  for (const std::int64_t channels : {1, 3, 16, 20})
    for (const std::int64_t groups : {1, 4}) {
      if (channels % groups != 0) continue;
      CAPTURE(channels);
      CAPTURE(groups);
      check_one_rounding({2, channels, 9, 7}, {24, channels / groups, 3, 3},
                         [&](const Node& x, const Node& w) {
                           return conv2d(x, w, {.padding = {1, 1}, .groups = groups});
                         });
    }
}

TEST_CASE("convolutions of 16 bits are offered by Winograd's tiles too") {
  const Build build = [](const Node& x, const Node& w) { return conv2d(x, w, {.padding = {1, 1}}); };
  Graph graph;
  const Node x = graph.input("x", {DType::bfloat16, {4, 32, 16, 16}});
  const Node y = build(x, graph.input("w", {DType::bfloat16, {64, 32, 3, 3}}));
  const std::vector<Node> of_y =
      gradients(sum(cast(y, DType::float32)), {x, Node(graph, graph.record(y.value().node).inputs[1])});
  for (const Node& node : {y, of_y[0], of_y[1]})
    CHECK(std::ranges::any_of(
        offers(node), [](const Candidate& of) { return of.implementation == "fast winograd in float32"; }));
  check_one_rounding({4, 32, 16, 16}, {64, 32, 3, 3}, build);
}

TEST_CASE("products of 16 bits are computed in float32 and rounded once") {
  for (const std::int64_t size : {3, 70}) {
    CAPTURE(size);
    check_one_rounding({5, size}, {size, 40}, [](const Node& x, const Node& y) { return matmul(x, y); });
    check_one_rounding({2, 6, size}, {2, 40, size},
                       [](const Node& x, const Node& y) { return matmul(x, y, {.transpose_b = true}); });
  }
  check_one_rounding({6, 30}, {30, 30}, [](const Node& x, const Node& y) { return matmul(x, y); });
}

TEST_CASE("products of 16 bits are offered in float32 beside other kernels") {
  Graph graph;
  const Node x = graph.input("x", {DType::float16, {64, 64}});
  CHECK(std::ranges::any_of(offers(matmul(x, x)), computes_in_float32));
}

TEST_CASE("pools and dropout of 16 bits have the bits of the portable kernels") {
  for (const std::int64_t channels : {1, 16, 17}) {
    CAPTURE(channels);
    check_portable_bits({2, channels, 9, 11}, [](const Node& x) -> std::vector<Node> {
      return {max_pool2d(x, {.kernel = {2, 2}})};
    });
    check_portable_bits({2, channels, 8, 8}, [](const Node& x) -> std::vector<Node> {
      const Node y = dropout(x, {.p = 0.25});
      return {y, output_of(y, 1)};
    });
  }
}

TEST_CASE("a softmax of 16 bits is computed in float32 and rounded once, and so is its gradient") {
  const auto backend = make_cpu_backend();
  for (const DType dtype : {DType::bfloat16, DType::float16})
    for (Node (*op)(Operand, std::int64_t) : {softmax, log_softmax}) {
      CAPTURE(name_of(dtype));
      Graph graph;
      const Node x = graph.input("x", {dtype, {9, 40}});
      const Node seed = graph.input("seed", x.type());
      const Node y = op(x, 1);
      CHECK(std::ranges::any_of(offers(y), computes_in_float32));
      const Node wide = cast(x, DType::float64);
      const Node exact = op(wide, 1);
      // The gradient is a formula of the rounded result.
      const std::vector<Node> wanted{
          y, vjp(std::vector{y}, std::vector{seed}, std::vector{x})[0], exact,
          vjp(std::vector{exact}, std::vector{cast(seed, DType::float64)}, std::vector{wide})[0]};
      const std::vector<ProgramOutput> outputs{{.node = wanted[0]}, {.node = wanted[1]}};
      CHECK(compile(graph, outputs, *backend)->to_text().find("softmax grad) [fast in float32]") !=
            std::string::npos);
      const std::vector<Tensor> values =
          Runner(graph, wanted, *backend)({drawn(x.type(), "x"), drawn(x.type(), "seed")});
      CHECK(largest_error(values[0], values[2]) < rounding(dtype) * 1.01);
      CHECK(largest_error(values[1], values[3]) < rounding(dtype) * 2);
    }
}

TEST_CASE("a product of a value of 16 bits with itself converts it for each operand") {
  const auto backend = make_cpu_backend();
  Graph graph;
  const Node x = graph.input("x", {DType::float16, {24, 24}});
  const Node wide = cast(x, DType::float64);
  const std::vector<Tensor> values =
      Runner(graph, {matmul(x, x), matmul(wide, wide)}, *backend)({drawn(x.type(), "x")});
  CHECK(largest_error(values[0], values[1]) < rounding(DType::float16));
}

TEST_CASE("moments of 16 bits are those of the same numbers in float32") {
  const auto backend = make_cpu_backend();
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    Graph graph;
    const Node x = graph.input("x", {dtype, {4, 20, 6, 5}});
    const MomentsResult narrow = moments(x);
    const MomentsResult wide = moments(cast(x, DType::float32));
    CHECK(std::ranges::any_of(offers(narrow.mean), computes_in_float32));
    const std::vector<Tensor> values = Runner(graph, {narrow.mean, narrow.inverse, wide.mean, wide.inverse},
                                              *backend)({drawn(x.type(), "x")});
    CHECK(largest_error(values[0], values[2]) < 1e-6);
    CHECK(largest_error(values[1], values[3]) < 1e-6);
  }
}

TEST_CASE("batch norm with an addition and a relu rounds once in 16 bits") {
  for (const std::int64_t channels : {5, 16}) {
    CAPTURE(channels);
    check_one_rounding(
        {4, channels, 6, 5}, {4, channels, 6, 5},
        [&](const Node& x, const Node& y) {
          const DType wide = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
          Graph& graph = x.graph();
          const Node scale = graph.constant(drawn({wide, {channels}}, "scale"));
          const Node shift = graph.constant(drawn({wide, {channels}}, "shift"));
          return relu(batch_norm(x, scale, shift).y + y);
        },
        false);  // keep_all would prevent the region, which rounds once
  }
}

TEST_CASE("a residual around a part in float32 compiles, and has the values of the portable kernels") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  Graph graph;
  const Node x = graph.input("x", {DType::bfloat16, {64, 256}});
  const Node y = x + cast(tanh(cast(x, DType::float32)), DType::bfloat16);
  const std::vector<Node> wanted{y, gradients(sum(cast(y * y, DType::float32)), {x})[0]};
  const std::vector<Tensor> inputs{drawn(x.type(), "x")};
  const std::vector<Tensor> found = Runner(graph, wanted, *fast)(inputs);
  const std::vector<Tensor> expected = Runner(graph, wanted, *portable)(inputs);
  for (std::size_t i = 0; i < 2; ++i) CHECK(largest_error(found[i], expected[i]) < rounding(DType::bfloat16));
}

TEST_CASE("an op that takes 16 bits alone is left as it is") {
  Graph graph;
  const Node x = graph.input("x", {DType::bfloat16, {8}});
  const Node y = apply(std::make_shared<const OnlyHalf>(), {x});
  CHECK(offers(y).size() == 1);  // its reference kernel
}

TEST_CASE("a region of float32 alone gets no widened kernel") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 4}});
  CHECK(std::ranges::none_of(offers(matmul(x, x)), computes_in_float32));
}

}  // namespace plexaura::testing::widened_source_test
