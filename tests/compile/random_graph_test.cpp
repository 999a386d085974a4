// Tests random graphs: whatever the compiler merges, folds, fuses, computes in place or computes once before
// the run, a program returns the same results as with every value kept.

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <span>

#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/conv2d.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::random_graph_test {

namespace {

// Every node of a random graph has this shape, so that any op can follow any other.
const Shape shape{3, 8, 4, 5};
constexpr int parameters = 2;
constexpr int inputs = 2;

class RandomGraph {
 public:
  RandomGraph(std::uint64_t seed, DType dtype) : random_(seed), type_{dtype, shape}, graph_(Mode::inference) {
    for (int i = 0; i < parameters; ++i) nodes_.push_back(graph_.parameter(parameter_name(i), type_));
    for (int i = 0; i < inputs; ++i) nodes_.push_back(graph_.input(input_name(i), type_));
    nodes_.push_back(graph_.constant(random_.tensor(type_, -1, 1)));
    leaves_ = nodes_;
    leaves_.pop_back();
    for (std::int64_t left = 2 + random_.below(12); left > 0; --left) nodes_.push_back(grow());
  }

  static std::string parameter_name(int i) { return fmt::format("p{}", i); }
  static std::string input_name(int i) { return fmt::format("x{}", i); }

  const Graph& graph() const { return graph_; }

  // Returns some nodes, and the gradients of one of them with respect to the leaves.
  std::vector<ProgramOutput> outputs() {
    std::vector<ProgramOutput> outputs;
    for (std::int64_t left = 1 + random_.below(4); left > 0; --left) outputs.push_back({.node = any()});
    for (const Node& grad : gradients_or_empty(sum(square(nodes_.back())), leaves_))
      if (!grad.is_empty()) outputs.push_back({.node = grad});
    return outputs;
  }

 private:
  Node any() {
    return nodes_[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(nodes_.size())))];
  }

  // Adds a random node whose values are not much larger than 1.
  Node grow() {
    const Node a = any();
    const Node b = any();
    switch (random_.below(17)) {
      case 0:
        return neg(a);
      case 1:
        return tanh(a);
      case 2:
        return relu(a);
      case 3:
        return exp(tanh(a)) * 0.5;
      case 4:
        return square(tanh(a));
      case 5:
        return sigmoid(a);
      case 6:
        return (a + b) * 0.5;
      case 7:
        return tanh(a) * b;
      case 8:
        return maximum(a, b);
      case 9:
        return where(gt(a, 0.1), a, b);
      case 10:
        return a - mean(a, {{0, 2, 3}, true});
      case 11:
        return softmax(a, 1) * max(a, {{3}, true});
      case 12:
        return permute(tanh(permute(a, {2, 0, 3, 1})), {1, 3, 0, 2});
      case 13:
        return reshape(reshape(a, {24, 20}) * 0.5, {3, 8, 4, 5});
      case 14:
        return concat({slice(a, {.axis = 1, .start = 3}), slice(b, {.axis = 1, .stop = 3})}, 1);
      case 15:
        return concat({convolved(a, b), slice(b, {.axis = 1, .start = 3})}, 1);
      default:
        return avg_pool2d(a, {.kernel = {3, 3}, .stride = Size2d{1, 1}, .padding = {1, 1}});
    }
  }

  // Convolves three channels with weights that are a part of `b`.
  static Node convolved(const Node& a, const Node& b) {
    const Node weights = slice(slice(b, {.axis = 2, .stop = 3}), {.axis = 3, .stop = 3});
    return conv2d(a, weights, {.padding = {1, 1}}) * 0.1;
  }

  Random random_;
  TensorType type_;
  Graph graph_;
  std::vector<Node> nodes_;
  std::vector<Node> leaves_;
};

// Returns the results of a graph for two batches. The parameters change before the second.
std::vector<Tensor> results(const Graph& graph, std::span<const ProgramOutput> outputs, DType dtype,
                            Backend& backend, const CompileOptions& options) {
  const auto program = compile(graph, outputs, backend, options);
  std::vector<ParameterSpec> specs;
  for (int i = 0; i < parameters; ++i)
    specs.push_back(
        {RandomGraph::parameter_name(i), {dtype, shape}, ParameterRole::trainable, Initialiser::zeros()});
  ParameterStore store(specs);
  store.place(program->placement, backend);
  VM vm(program, backend, {.store = &store});
  Random random(99);
  std::vector<Tensor> all;
  for (int run = 0; run < 2; ++run) {
    for (int i = 0; i < parameters; ++i)
      store.write(RandomGraph::parameter_name(i), random.tensor({dtype, shape}, -1, 1));
    std::vector<Feed> feeds;
    for (int i = 0; i < inputs; ++i)
      feeds.emplace_back(RandomGraph::input_name(i), random.tensor({dtype, shape}, -1, 1));
    vm.run(feeds);
    for (std::size_t i = 0; i < outputs.size(); ++i) all.push_back(vm.output(i));
  }
  return all;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_doubles();
  const std::vector<double> y = b.to_doubles();
  double difference = 0;
  double size = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference = std::max(difference, std::abs(x[i] - y[i]));
    size = std::max(size, std::abs(y[i]));
  }
  return difference / size;
}

void check_graph(std::uint64_t seed, DType dtype, double tolerance) {
  CAPTURE(seed);
  CAPTURE(name_of(dtype));
  RandomGraph random(seed, dtype);
  const std::vector<ProgramOutput> outputs = random.outputs();
  const std::vector<Tensor> expected = results(random.graph(), outputs, dtype, oracle(), {.keep_all = true});
  const std::vector<Tensor> actual = results(random.graph(), outputs, dtype, test_backend(), {});
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    CHECK(largest_difference(actual[i], expected[i]) <= tolerance);
  }
}

}  // namespace

TEST_CASE("a random graph gives the same when it is compiled as when every value is kept") {
  constexpr std::uint64_t graphs = address_sanitized ? 30 : 150;
  for (std::uint64_t seed = 1; seed <= graphs; ++seed) {
    check_graph(seed, DType::float64, 1e-10);
    check_graph(seed, DType::float32, 1e-3);
  }
}

}  // namespace plexaura::testing::random_graph_test
