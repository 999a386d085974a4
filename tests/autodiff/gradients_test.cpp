#include "core/autodiff/gradients.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/labels.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::gradients_test {

namespace {

Node vector_input(Graph& graph, const char* name, std::int64_t count = 3) {
  return graph.input(name, {DType::float64, {count}});
}

bool says(const std::string& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    CAPTURE(text);
    CAPTURE(word);
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

// An op with a wrong vjp, which gradients() must detect.
class Faulty final : public Op {
 public:
  enum class Fault { count, dtype, shape };
  explicit Faulty(Fault fault) : fault_(fault) {}
  std::string_view name() const override { return "faulty"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest& request) const override {
    if (fault_ == Fault::count) return {};
    if (fault_ == Fault::dtype) return {cast(request.grad_outputs[0], DType::float32)};
    return {sum(request.grad_outputs[0], {.axes = {0}})};
  }

 private:
  Fault fault_;
};

class WithoutGradient final : public Op {
 public:
  std::string_view name() const override { return "one_way"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
};

}  // namespace

TEST_CASE("gradients accumulate over all paths") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node y = x * x + 3 * x;
  const auto results =
      Runner(graph, gradients(sum(y * x), {x}), test_backend())({Tensor::of<double>({3}, {1, 2, -1})});
  check_close(results[0], {3 + 6, 12 + 12, 3 - 6});
}

TEST_CASE("gradients of gradients are second and third derivatives") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node first = gradients(sum(x * x * x * x), {x})[0];
  const Node second = gradients(sum(first), {x})[0];
  const Node third = gradients(sum(second), {x})[0];
  const auto results =
      Runner(graph, {first, second, third}, test_backend())({Tensor::of<double>({3}, {1, 2, -1})});
  check_close(results[0], {4, 32, -4});
  check_close(results[1], {12, 48, 12});
  check_close(results[2], {24, 48, -24});
}

TEST_CASE("a gradient is summed down to a shape that was broadcast") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 1, 3}});
  const Node y = graph.input("y", {DType::float64, {4, 1}});
  const std::vector<Node> grads = gradients(sum(x + y), {x, y});
  CHECK(grads[0].shape() == x.shape());
  CHECK(grads[1].shape() == y.shape());
  const auto results = Runner(graph, grads, test_backend())({Tensor(x.type()), Tensor(y.type())});
  check_close(results[0], std::vector<double>(6, 4));
  check_close(results[1], std::vector<double>(4, 6));
}

TEST_CASE("the gradient of a leaf that is used twice is the sum of both uses") {
  Graph graph;
  const TensorType type{DType::float64, {2, 2}};
  const Node first = graph.input("w", type);
  const Node x = graph.input("x", type);
  const Node loss = sum(matmul(matmul(x, first), first, {.transpose_b = true}));
  CHECK(gradients(loss, {first}).size() == 1);
  const Node tied = graph.parameter("tied", type);
  CHECK(same_value(graph.parameter("tied", type), tied));
  const std::vector<Node> grads = gradients(sum(tied * x) + sum(graph.parameter("tied", type) * 2), {tied});
  CHECK(name_of(graph, grads[0].id()).starts_with("add"));
}

TEST_CASE("the seed multiplies every gradient") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node seed = graph.step_scalar(StepScalar::gradient_seed, DType::float64);
  const Node grad = gradients(sum(square(x)), {x}, seed)[0];
  const auto results =
      Runner(graph, {grad}, test_backend())({Tensor::of<double>({3}, {1, 2, 3})}, {.gradient_seed = 0.25});
  check_close(results[0], {0.5, 1, 1.5});
}

TEST_CASE("the gradient with respect to a value in the middle, and to the loss itself") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node middle = exp(x);
  const Node loss = sum(square(middle));
  const auto results =
      Runner(graph, gradients(loss, {middle, loss}), test_backend())({Tensor::of<double>({3}, {0, 0, 0})});
  check_close(results[0], {2, 2, 2});
  check_close(results[1], {1});
}

TEST_CASE("what gradients() refuses, with the nodes' names") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node other = vector_input(graph, "other");
  const Node labels = graph.input("labels", {DType::int64, {3}});
  const Node loss = sum(x);
  CHECK(says(user_error([&] { gradients(x, {x}); }), {"scalar", "gradients_test.cpp"}));
  CHECK(says(user_error([&] { gradients(loss, {other}); }), {"does not depend on input"}));
  CHECK(says(user_error([&] { gradients(loss, {labels}); }), {"integers", "no gradient"}));
  CHECK(says(user_error([&] { gradients(sum(exp(stop_gradient(square(x)))), {x}); }),
             {"no gradient passes stop_gradient", "on the way to input"}));
  const auto by_place = [&](const Node& y) { return sum(cast(argmax(y, 0), DType::float64) * 2); };
  CHECK(says(user_error([&] { gradients(by_place(square(x)), {x}); }),
             {"no gradient passes argmax", "on the way to input"}));
  const Node slopes = gradients(sum(relu(x)), {x})[0];
  CHECK(says(user_error([&] { gradients(sum(slopes), {x}); }),
             {"no gradient passes gt", "such as softplus instead of relu for a second derivative"}));
  CHECK(says(user_error([&] { gradients(loss, {x}, graph.constant(Tensor::scalar(1.0F))); }),
             {"seed", "dtype"}));
  CHECK(says(user_error([&] { gradients(sum(apply(std::make_shared<WithoutGradient>(), {x})), {x}); }),
             {"one_way has no gradient", "stop_gradient"}));
  argmax(other, 0);  // the loss does not depend on it
  CHECK(says(user_error([&] { gradients(sum(x), {other}); }), {"does not depend on input"}));
  const Node late = vector_input(graph, "late");
  CHECK(says(user_error([&] { gradients(loss, {late}); }), {"does not depend on input"}));
  Graph another;
  const Node stranger = vector_input(another, "x");
  CHECK(says(user_error([&] { gradients(loss, {stranger}); }), {"another graph"}));
}

TEST_CASE("what has no gradient is empty where that is allowed") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node other = vector_input(graph, "other");
  const std::vector<Node> grads =
      gradients_or_empty(sum(x) + sum(stop_gradient(other)), std::vector{x, other});
  CHECK(grads[0].type() == x.type());
  CHECK(grads[1].is_empty());
  CHECK(gradients_or_empty(sum(x), std::vector{other})[0].is_empty());
}

TEST_CASE("a loss does not depend on a node that was made after it, however large the graph is") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  for (int i = 0; i < 130; ++i) {
    const Node loss = sum(x);
    const Node late = vector_input(graph, ("late" + std::to_string(i)).c_str());
    const std::vector<Node> grads = gradients_or_empty(loss, std::vector{late, x});
    CHECK(grads[0].is_empty());
    CHECK(grads[1].type() == x.type());
  }
}

TEST_CASE("no gradient flows through a saved output") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 3}});
  const Node loss = softmax_cross_entropy(x, graph.constant(Tensor::of<std::int64_t>({2}, {0, 2})));
  const Node saved(graph, {loss.id(), 1});
  CHECK(says(user_error([&] { gradients(sum(saved), {x}); }), {"no gradient passes softmax_cross_entropy"}));
  const Node grad = gradients(loss + sum(square(saved)), {x})[0];
  const Node alone = gradients(loss, {x})[0];
  const auto results =
      Runner(graph, {grad, alone}, test_backend())({Tensor::of<double>({2, 3}, {1, 2, 4, -3, 0, 1})});
  CHECK(results[0] == results[1]);
}

TEST_CASE("gradients stop at integers") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node loss = sum(x * one_hot(cast(sum(x), DType::int64), 3, DType::float64));
  const auto results =
      Runner(graph, gradients(loss, {x}), test_backend())({Tensor::of<double>({3}, {0.5, 0.25, 0.5})});
  check_close(results[0], {0, 1, 0});
}

TEST_CASE("a wrong vjp is our mistake, and says of which op") {
  for (const auto fault : {Faulty::Fault::count, Faulty::Fault::dtype, Faulty::Fault::shape}) {
    Graph graph;
    const Node x = vector_input(graph, "x");
    const Node loss = sum(apply(std::make_shared<Faulty>(fault), {x}));
    CHECK(says(error_text<InternalError>([&] { gradients(loss, {x}); }), {"the vjp of faulty"}));
  }
}

TEST_CASE("what a gradient is made of has the place of what it belongs to") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node y = [&] {
    const Graph::WithOrigin place(graph, {"models/iris.yaml", 7, 5, {}, false});
    const Graph::Scope scope(graph, "hidden1");
    return exp(x);
  }();
  const Node grad = gradients(sum(y), {x})[0];
  CHECK(to_string(graph.record(grad.id()).origin) == "gradient of models/iris.yaml:7:5 (hidden1)");
}

class OpWithoutGradient final : public Op {
 public:
  std::string_view name() const override { return "without_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
};

TEST_CASE("an inner node has a gradient, whatever op computes it") {
  Graph graph;
  const Node x = apply(std::make_shared<OpWithoutGradient>(), {vector_input(graph, "x")});
  CHECK_NOTHROW(gradients(sum(x * x), {x}));
}

TEST_CASE("the loss must be floating") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node count = graph.input("count", {DType::int64, {}});
  CHECK_THROWS_WITH_AS(gradients(count, {x}), doctest::Contains("the loss must be floating"), UserError);
}

namespace {

std::vector<Node> vjp_of(const std::vector<Node>& outputs, const std::vector<Node>& cotangents,
                         const std::vector<Node>& wrt) {
  return vjp(outputs, cotangents, wrt);
}

}  // namespace

TEST_CASE("vjp sums over outputs of any shape, each with its cotangent") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node c = vector_input(graph, "c");
  const Node d = graph.input("d", {DType::float64, {}});
  const Node grad = vjp_of({square(x), sum(x * square(x))}, {c, d}, {x})[0];
  const Node second = vjp_of({grad}, {c}, {x})[0];
  const auto results = Runner(graph, {grad, second}, test_backend())(
      {Tensor::of<double>({3}, {1, 2, -1}), Tensor::of<double>({3}, {1, 10, 100}), Tensor::scalar(0.5)});
  check_close(results[0], {2 + 1.5, 40 + 6, -200 + 1.5});
  check_close(results[1], {2 + 3, 200 + 60, 20000 - 300});
}

TEST_CASE("vjp of an output that leads to another, and of one that is given twice") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node c = vector_input(graph, "c");
  const Node inner = 3 * x;
  const auto results = Runner(
      graph, {vjp_of({inner, square(inner)}, {c, c}, {x})[0], vjp_of({inner, inner}, {c, c}, {inner})[0]},
      test_backend())({Tensor::of<double>({3}, {1, 2, -1}), Tensor::of<double>({3}, {1, 10, 100})});
  check_close(results[0], {3 + 18, 30 + 360, 300 - 1800});
  check_close(results[1], {2, 20, 200});
}

TEST_CASE("vjp takes an empty cotangent for zero, and gives an empty node for it") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node other = vector_input(graph, "other");
  const Node c = vector_input(graph, "c");
  const std::vector<Node> grads = vjp_of({2 * x, other}, {c, Node()}, {x, other});
  CHECK(grads[0].type() == x.type());
  CHECK(grads[1].is_empty());
  CHECK(vjp_of({stop_gradient(x)}, {c}, {x})[0].is_empty());
}

TEST_CASE("gradients() appends the nodes that vjp appends") {
  const auto text = [](bool by_vjp) {
    Graph graph;
    const Node x = vector_input(graph, "x");
    const Node loss = sum(square(x) * exp(x));
    const Node seed = graph.constant(Tensor::scalar(2.0));
    if (by_vjp)
      vjp_of({loss}, {seed}, {x});
    else
      gradients(loss, {x}, seed);
    return to_text(graph);
  };
  CHECK(text(true) == text(false));
}

TEST_CASE("what vjp() refuses, with the nodes' names") {
  Graph graph;
  const Node x = vector_input(graph, "x");
  const Node c = vector_input(graph, "c");
  const Node labels = graph.input("labels", {DType::int64, {3}});
  Graph another;
  const Node stranger = vector_input(another, "stranger");
  const auto refused = [](const std::vector<Node>& outputs, const std::vector<Node>& cotangents,
                          const std::vector<Node>& wrt) {
    return user_error([&] { vjp_of(outputs, cotangents, wrt); });
  };
  CHECK(says(refused({}, {}, {x}), {"vjp()", "no output"}));
  CHECK(says(refused({x, c}, {c}, {x}), {"1 cotangents for 2 outputs"}));
  CHECK(says(refused({sum(x)}, {c}, {x}), {"sum", "its cotangent is float64[3]", "must be float64[]"}));
  CHECK(says(refused({labels}, {labels}, {x}), {"vjp(input", "must be floating"}));
  CHECK(says(refused({square(x)}, {c}, {labels}), {"vjp(input", "no gradient"}));
  CHECK(says(refused({square(x)}, {c}, {stranger}), {"another graph"}));
  CHECK(says(refused({square(x)}, {stranger}, {x}), {"cotangent belongs to another graph"}));
  CHECK(says(refused({square(x), stranger}, {c, stranger}, {x}), {"another graph than the first output"}));
  const Node logits = graph.input("logits", {DType::float64, {2, 3}});
  const Node loss = softmax_cross_entropy(logits, graph.constant(Tensor::of<std::int64_t>({2}, {0, 2})));
  CHECK(says(refused({Node(graph, {loss.id(), 1})}, {Node()}, {logits}), {"saved this output"}));
}

}  // namespace plexaura::testing::gradients_test
