#include "core/ops/losses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/labels.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::losses_test {

namespace {

OpCase entropy(Shape logits, Reduction reduction) {
  const std::int64_t samples = logits[0];
  const std::int64_t classes = logits[1];
  return {"softmax_cross_entropy of " + to_string(logits) + ", " + std::string(name_of(reduction)),
          "softmax_cross_entropy",
          [=](Graph&, auto x) {
            return std::vector{softmax_cross_entropy(x[0], x[1], {.reduction = reduction})};
          },
          {{std::move(logits), between(-2, 2)}, {{samples}, whole(0, classes), DType::int64}},
          [=](auto x) { return std::vector{reference::cross_entropy(x[0], x[1], reduction)}; }};
}

// Returns a case for the gradient op as a function of logits and cotangent.
OpCase entropy_grad(Reduction reduction) {
  const auto build = [=](Graph& graph, std::span<const Node> x) {
    const Node loss = softmax_cross_entropy(x[0], x[1], {.reduction = reduction});
    const std::vector<Node> inputs{x[0], x[1], output_of(loss, 1), x[2]};
    return graph.append(std::make_shared<SoftmaxCrossEntropyGrad>(CrossEntropyOptions{reduction}), inputs,
                        Graph::Where::current());
  };
  return {"softmax_cross_entropy_grad, " + std::string(name_of(reduction)),
          "softmax_cross_entropy_grad",
          build,
          {{{3, 4}}, {{3}, whole(0, 4), DType::int64}, {reduction == Reduction::none ? Shape{3} : Shape{}}},
          [=](auto x) { return std::vector{reference::cross_entropy_grad(x[0], x[1], x[2], reduction)}; }};
}

OpCase top(std::int64_t k, Shape logits) {
  const std::int64_t samples = logits[0];
  const std::int64_t classes = logits[1];
  return {"top_k_correct, k = " + std::to_string(k),
          "top_k_correct",
          [=](Graph&, auto x) { return std::vector{top_k_correct(x[0], x[1], k)}; },
          {{std::move(logits), distinct(0.25)}, {{samples}, whole(0, classes), DType::int64}},
          [=](auto x) { return std::vector{reference::top_k_correct(x[0], x[1], k)}; },
          false};
}

OpCase encoded(Shape labels, std::int64_t classes, DType dtype) {
  return {"one_hot of " + to_string(labels) + " in " + std::string(name_of(dtype)),
          "one_hot",
          [=](Graph&, auto x) { return std::vector{one_hot(x[0], classes, dtype)}; },
          {{std::move(labels), whole(-1, classes + 2), DType::int64}},
          [=](auto x) { return std::vector{reference::one_hot(x[0], classes)}; },
          false};
}

double square_of_difference(double a, double b) { return (a - b) * (a - b); }
double binary_cross_entropy(double logit, double target) {
  const double p = 1 / (1 + std::exp(-logit));
  return -target * std::log(p) - (1 - target) * std::log(1 - p);
}

double weighted_entropy(double logit, double target, double weight) {
  const double p = 1 / (1 + std::exp(-logit));
  return -weight * target * std::log(p) - (1 - target) * std::log(1 - p);
}

OpCase weighted(Shape weight, Reduction reduction) {
  return {"binary_cross_entropy_with_logits, pos_weight " + to_string(weight) + ", " +
              std::string(name_of(reduction)),
          "sigmoid_cross_entropy",
          [=](Graph&, auto x) {
            return std::vector{binary_cross_entropy_with_logits(x[0], x[1], x[2], reduction)};
          },
          {{{3, 2, 4}}, {{3, 2, 4}, between(0, 1)}, {std::move(weight), between(0.3, 3)}},
          [=](auto x) {
            return std::vector{
                reference::join_samples(reference::elementwise(weighted_entropy)(x)[0], reduction)};
          }};
}

OpCase mse_case(Reduction reduction) {
  return {"mse, " + std::string(name_of(reduction)),
          "square",
          [=](Graph&, auto x) { return std::vector{mse(x[0], x[1], reduction)}; },
          {{{3, 2}}, {{3, 2}}},
          [=](auto x) {
            const Tensor squares = reference::elementwise(square_of_difference)(x)[0];
            if (reduction == Reduction::none) return std::vector{squares};
            return std::vector{reference::reduce(
                squares, {}, reduction == Reduction::sum ? reference::sum : reference::mean)};
          }};
}

OpCase composed(const std::string& name, std::string op, Node (*loss)(Operand, Operand, Reduction),
                double (*of_element)(double, double), Reduction reduction) {
  return {name + ", " + std::string(name_of(reduction)),
          std::move(op),
          [=](Graph&, auto x) { return std::vector{loss(x[0], x[1], reduction)}; },
          {{{3, 2, 4}}, {{3, 2, 4}, between(0, 1)}},
          [=](auto x) {
            return std::vector{reference::join_samples(reference::elementwise(of_element)(x)[0], reduction)};
          }};
}

const Cases cases({
    entropy({3, 4}, Reduction::mean),
    entropy({3, 4}, Reduction::sum),
    entropy({3, 4}, Reduction::none),
    entropy({70, 17}, Reduction::mean),
    entropy({1, 1}, Reduction::mean),
    entropy({0, 4}, Reduction::mean),
    entropy({0, 4}, Reduction::none),
    entropy_grad(Reduction::mean),
    entropy_grad(Reduction::sum),
    entropy_grad(Reduction::none),
    top(1, {6, 4}),
    top(3, {6, 4}),
    top(9, {6, 4}),
    top(1, {1, 3}),
    top(1, {0, 4}),
    encoded({2, 3}, 4, DType::float32),
    encoded({1}, 1, DType::int64),
    encoded({0, 2}, 3, DType::bfloat16),
    composed("squared_error", "square", squared_error, square_of_difference, Reduction::mean),
    composed("squared_error", "square", squared_error, square_of_difference, Reduction::none),
    composed("binary_cross_entropy_with_logits", "sigmoid_cross_entropy", binary_cross_entropy_with_logits,
             binary_cross_entropy, Reduction::mean),
    composed("binary_cross_entropy_with_logits", "sigmoid_cross_entropy", binary_cross_entropy_with_logits,
             binary_cross_entropy, Reduction::sum),
    weighted({4}, Reduction::mean),
    weighted({3, 1, 1}, Reduction::none),
    weighted({}, Reduction::sum),
    mse_case(Reduction::mean),
    mse_case(Reduction::sum),
    mse_case(Reduction::none),
});

Node logits_of(Graph& graph, Shape shape) {
  return graph.input("logits", {DType::float32, std::move(shape)});
}
Node labels_of(Graph& graph, Shape shape, DType dtype = DType::int64) {
  return graph.input("labels", {dtype, std::move(shape)});
}

const WrongCases wrong({
    {"softmax_cross_entropy, float labels",
     "softmax_cross_entropy",
     [](Graph& graph) {
       softmax_cross_entropy(logits_of(graph, {3, 4}), labels_of(graph, {3}, DType::float32));
     },
     {"int64", "cast()"}},
    {"softmax_cross_entropy, another number of labels",
     "softmax_cross_entropy",
     [](Graph& graph) {
       softmax_cross_entropy(logits_of(graph, {3, 4}), labels_of(graph, {4}));
     },
     {"one label", "3 samples"}},
    {"softmax_cross_entropy, logits of an image",
     "softmax_cross_entropy",
     [](Graph& graph) {
       softmax_cross_entropy(logits_of(graph, {3, 4, 2, 2}), labels_of(graph, {3}));
     },
     {"two axes", "flatten()"}},
    {"softmax_cross_entropy_grad, a scalar for each sample",
     "softmax_cross_entropy_grad",
     [](Graph& graph) {
       const std::vector<Node> inputs{logits_of(graph, {3, 4}), labels_of(graph, {3}),
                                      graph.input("p", {DType::float32, {3, 4}}),
                                      graph.input("g", {DType::float32, {3}})};
       graph.append(std::make_shared<SoftmaxCrossEntropyGrad>(CrossEntropyOptions{}), inputs,
                    Graph::Where::current());
     },
     {"type and shape of the loss"}},
    {"top_k_correct, k = 0",
     "top_k_correct",
     [](Graph& graph) {
       top_k_correct(logits_of(graph, {3, 4}), labels_of(graph, {3}), 0);
     },
     {"k must be 1 or more"}},
    {"one_hot of floats",
     "one_hot",
     [](Graph& graph) { one_hot(logits_of(graph, {3}), 4, DType::float32); },
     {"int64"}},
    {"binary_cross_entropy_with_logits, pos_weight of another shape",
     "binary_cross_entropy_with_logits",
     [](Graph& graph) {
       const Node x = logits_of(graph, {3, 4});
       binary_cross_entropy_with_logits(x, x, graph.input("weight", {DType::float32, {3}}));
     },
     {"binary_cross_entropy_with_logits(float32[3,4], float32[3]): pos_weight must broadcast"}},
});

}  // namespace

TEST_CASE("losses: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("losses: what they refuse") { check_all(wrong); }

TEST_CASE("the cross-entropy agrees with figures of PyTorch") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float64, {3, 4}});
  const Node labels = labels_of(graph, {3});
  const Node loss = softmax_cross_entropy(logits, labels);
  const Node each = softmax_cross_entropy(logits, labels, {.reduction = Reduction::none});
  const auto results = Runner(graph, {loss, gradients(loss, {logits})[0], each}, test_backend())(
      {pattern(logits.shape()), Tensor::of<std::int64_t>({3}, {2, 0, 3})});
  check_close(results[0], {1.3473971553480422});
  check_close(results[1],
              {0.03454087014838586, 0.1987689837874677, -0.2602103106553842, 0.026900456719530622,
               -0.18726362774158306, 0.05373604166517019, 0.01976838497854815, 0.11375920109786467,
               0.0781797213916888, 0.02876071221651353, 0.1655064714849795, -0.2724469050931818});
  check_close(results[2], {1.516999725429153, 0.8250590469818512, 1.700132693633123});
}

TEST_CASE("the binary cross-entropy agrees with figures of PyTorch, and has the right slope at 0") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float64, {4}});
  const Node targets = graph.input("targets", {DType::float64, {4}});
  const Node loss = binary_cross_entropy_with_logits(logits, targets, Reduction::sum);
  const auto results = Runner(graph, {loss, gradients(loss, {logits})[0]}, test_backend())(
      {Tensor::of<double>({4}, {-3, 0, 0, 2}), Tensor::of<double>({4}, {0, 1, 0.25, 1})});
  check_close(results[0], {1.561809723736605});
  check_close(results[1], {0.04742587317756678, -0.5, 0.25, -0.11920292202211769});
}

TEST_CASE("the weighted binary cross-entropy is exact for large logits") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float64, {3}});
  const Node targets = graph.input("targets", {DType::float64, {3}});
  const Node loss = binary_cross_entropy_with_logits(logits, targets, 3, Reduction::none);
  const auto results = Runner(graph, {loss, gradients(sum(loss), {logits})[0]}, test_backend())(
      {Tensor::of<double>({3}, {-1000, 1000, 1000}), Tensor::of<double>({3}, {1, 1, 0})});
  CHECK(results[0].to_doubles() == std::vector<double>{3000, 0, 1000});
  CHECK(results[1].to_doubles() == std::vector<double>{-3, 0, 1});
}

TEST_CASE("a label out of range makes the loss and the gradient of its sample NaN") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float32, {3, 2}});
  const Node loss = softmax_cross_entropy(logits, labels_of(graph, {3}), {.reduction = Reduction::none});
  const auto results = Runner(graph, {loss, gradients(sum(loss), {logits})[0]}, test_backend())(
      {Tensor(logits.type()), Tensor::of<std::int64_t>({3}, {0, 2, -1})});
  CHECK(results[0].to_doubles()[0] == doctest::Approx(std::log(2.0)));
  CHECK(std::isnan(results[0].to_doubles()[1]));
  CHECK(std::isnan(results[0].to_doubles()[2]));
  CHECK(results[1].to_doubles()[0] == doctest::Approx(-0.5));
  CHECK(std::isnan(results[1].to_doubles()[2]));
}

namespace {

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Returns the gradient of the mean over the samples for which `valid` is true.
std::vector<double> masked_gradient(Graph& graph, const Node& losses, const Node& valid, const Node& by,
                                    const std::vector<Tensor>& inputs) {
  const Node loss = sum(where(valid, losses, 0)) / sum(cast(valid, losses.dtype()));
  const auto results = Runner(graph, {loss, gradients(loss, {by})[0]}, test_backend())(inputs);
  CHECK(std::isfinite(results[0].to_doubles()[0]));
  return results[1].to_doubles();
}

Tensor ones_of(const TensorType& type) {
  Tensor ones(TensorType{DType::float64, type.shape});
  std::ranges::fill(ones.as<double>(), 1.0);
  return ones.cast(type.dtype);
}

bool all_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

const std::array kept_floats{DType::float64, DType::float32, DType::bfloat16, DType::float16};

}  // namespace

TEST_CASE("a sample of a wrong label that is left out of the loss has the gradient 0") {
  for (const DType dtype : kept_floats) {
    CAPTURE(name_of(dtype));
    Graph graph;
    const Node logits = graph.input("logits", {dtype, {3, 4}});
    const Node labels = labels_of(graph, {3});
    const Node losses = softmax_cross_entropy(logits, labels, {.reduction = Reduction::none});
    const std::vector<double> grad =
        masked_gradient(graph, losses, ge(labels, 0), logits,
                        {Tensor(logits.type()), Tensor::of<std::int64_t>({3}, {1, -1, 2})});
    CHECK(grad == std::vector<double>{0.125, -0.375, 0.125, 0.125, 0, 0, 0, 0, 0.125, 0.125, -0.375, 0.125});
  }
}

TEST_CASE("a sample of logits that are no numbers and is left out of the loss has the gradient 0") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float64, {2, 2}});
  const Node labels = labels_of(graph, {2});
  const Node losses = softmax_cross_entropy(logits, labels, {.reduction = Reduction::none});
  const std::vector<double> grad = masked_gradient(
      graph, losses, eq(labels, 1), logits,
      {Tensor::of<double>({2, 2}, {0, 0, not_a_number, 1}), Tensor::of<std::int64_t>({2}, {1, 0})});
  CHECK(grad == std::vector<double>{0.5, -0.5, 0, 0});
}

TEST_CASE("a sample without a target that is left out of the loss has the gradient 0") {
  using Loss = Node (*)(Operand, Operand, Reduction);
  const Loss weighted_loss = [](Operand outputs, Operand targets, Reduction reduction) {
    return binary_cross_entropy_with_logits(outputs, targets, 3, reduction);
  };
  for (const Loss loss : {Loss{squared_error}, Loss{binary_cross_entropy_with_logits}, weighted_loss})
    for (const DType dtype : kept_floats) {
      CAPTURE(name_of(dtype));
      Graph graph;
      const Node outputs = graph.input("outputs", {dtype, {2, 2}});
      const Node targets = graph.input("targets", {dtype, {2, 2}});
      const Node valid = graph.input("valid", {DType::boolean, {2}});
      const std::vector<double> grad =
          masked_gradient(graph, loss(outputs, targets, Reduction::none), valid, outputs,
                          {Tensor::of<double>({2, 2}, {0, 0, 0, 0}).cast(dtype),
                           Tensor::of<double>({2, 2}, {1, 0, not_a_number, 1}).cast(dtype),
                           Tensor::of<double>({2}, {1, 0}).cast(DType::boolean)});
      CHECK(grad[0] < 0);
      CHECK(grad[2] == 0);
      CHECK(grad[3] == 0);
    }
}

TEST_CASE(
    "second derivatives of a loss are 0 for a sample that is ignored, also where its logits are no numbers") {
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    CAPTURE(name_of(reduction));
    Graph graph;
    const Node logits = graph.input("logits", {DType::float64, {2, 2}});
    const Node labels = graph.input("labels", {DType::int64, {2}});
    const Node loss = sum(softmax_cross_entropy(logits, labels, {.reduction = reduction, .ignore = -1}));
    const Node grad = gradients(loss, {logits})[0];
    const Node again = gradients(sum(grad * graph.constant(pattern(logits.shape()))), {logits})[0];
    const Tensor result = Runner(
        graph, {again}, test_backend())({Tensor::of<double>({2, 2}, {0.5, -1, not_a_number, not_a_number}),
                                         Tensor::of<std::int64_t>({2}, {0, -1})})[0];
    CHECK(std::isfinite(result.to_doubles()[0]));
    CHECK(result.to_doubles()[0] != 0);
    CHECK(result.to_doubles()[2] == 0);
    CHECK(result.to_doubles()[3] == 0);
  }
}

TEST_CASE("second derivatives of a loss are 0 for the samples that are left out") {
  using Build = Node (*)(const Node& outputs, const Node& targets);
  const std::vector<Build> losses{
      [](const Node& outputs, const Node& targets) {
        return squared_error(outputs, targets, Reduction::none);
      },
      [](const Node& outputs, const Node& targets) {
        return binary_cross_entropy_with_logits(outputs, targets, Reduction::none);
      },
      [](const Node& outputs, const Node& targets) {
        const Node labels =
            reshape(slice(cast(targets, DType::int64), {.axis = 1, .start = 0, .stop = 1}), {2});
        const Node valid = eq(targets, targets);
        const Node wrong = where(reshape(slice(valid, {.axis = 1, .start = 0, .stop = 1}), {2}), labels, -1);
        return softmax_cross_entropy(outputs, wrong, {.reduction = Reduction::none});
      }};
  for (const Build& build : losses) {
    Graph graph;
    const Node outputs = graph.input("outputs", {DType::float64, {2, 2}});
    const Node targets = graph.input("targets", {DType::float64, {2, 2}});
    const Node valid = graph.input("valid", {DType::boolean, {2}});
    const Node loss = sum(where(valid, build(outputs, targets), 0));
    const Node grad = gradients(loss, {outputs})[0];
    const Node by_square = gradients(sum(square(grad)), {outputs})[0];
    const Node along = gradients(sum(grad * graph.constant(pattern(outputs.shape()))), {outputs})[0];
    const auto results = Runner(graph, {by_square, along}, test_backend())(
        {Tensor::of<double>({2, 2}, {0.5, -1, 2, 3}),
         Tensor::of<double>({2, 2}, {1, 0, not_a_number, not_a_number}),
         Tensor::of<double>({2}, {1, 0}).cast(DType::boolean)});
    for (const Tensor& result : results) {
      CHECK(all_finite(result.to_doubles()));
      CHECK(result.to_doubles()[0] != 0);
      CHECK(result.to_doubles()[2] == 0);
      CHECK(result.to_doubles()[3] == 0);
    }
  }
}

TEST_CASE("mean losses of more samples than a 16-bit float counts") {
  const double sigmoid_of_1 = 1 / (1 + std::exp(-1.0));
  for (const auto& [dtype, count] : {std::pair{DType::float16, 70000}, {DType::bfloat16, 1000}}) {
    CAPTURE(name_of(dtype));
    Graph graph;
    const Node x = graph.input("x", {dtype, {count, 1}});
    const Node zeros = graph.constant(Tensor(x.type()));
    const Node labels = graph.constant(Tensor(TensorType{DType::int64, {count}}));
    const Node pairs = concat({x, x}, 1);
    const std::vector<Node> losses{
        mse(x, zeros), squared_error(x, zeros), binary_cross_entropy_with_logits(x, zeros),
        softmax_cross_entropy(pairs, labels), softmax_cross_entropy(pairs, labels, {.ignore = -1})};
    std::vector<Node> wanted = losses;
    for (std::size_t i = 0; i < losses.size(); ++i)
      wanted.push_back(gradients(losses[i], {i < 3 ? x : pairs})[0]);
    const auto results = Runner(graph, wanted, test_backend())({ones_of(x.type())});
    const auto first = [&](std::size_t i) { return results[i].to_doubles()[0]; };
    const auto near = [](double value) { return doctest::Approx(value).epsilon(0.01); };
    CHECK(first(0) == 1);
    CHECK(first(1) == 1);
    CHECK(first(2) == near(-std::log(1 - sigmoid_of_1)));
    CHECK(first(3) == near(std::log(2.0)));
    CHECK(first(4) == near(std::log(2.0)));
    CHECK(count * first(5) == near(2));
    CHECK(count * first(6) == near(2));
    CHECK(count * first(7) == near(sigmoid_of_1));
    CHECK(count * first(8) == near(-0.5));
    CHECK(count * first(9) == near(-0.5));
  }
}

TEST_CASE("the mean loss of no samples is 0") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float32, {0, 4}});
  const Node entropy_loss = softmax_cross_entropy(logits, labels_of(graph, {0}));
  const auto results = Runner(graph, {entropy_loss, squared_error(logits, logits)},
                              test_backend())({Tensor(logits.type()), Tensor(TensorType{DType::int64, {0}})});
  CHECK(results[0].to_doubles()[0] == 0);
  CHECK(results[1].to_doubles()[0] == 0);
}

TEST_CASE("the mean loss of one sample is its loss") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 2}});
  const auto results =
      Runner(graph, {squared_error(x, x * 0)}, test_backend())({Tensor::of<double>({1, 2}, {1, 2})});
  CHECK(results[0].to_doubles()[0] == 5);
}

TEST_CASE("a mean loss is a mean over samples, and not over samples times outputs") {
  Graph graph;
  const Node prediction = graph.input("prediction", {DType::float64, {2, 3}});
  const Node target = graph.input("target", {DType::float64, {2, 3}});
  const auto results =
      Runner(graph, {squared_error(prediction, target), mse(prediction, target)},
             test_backend())({Tensor::of<double>({2, 3}, {1, 1, 1, 2, 2, 2}), Tensor(target.type())});
  CHECK(results[0].to_doubles()[0] == 7.5);
  CHECK(results[1].to_doubles()[0] == 2.5);
}

TEST_CASE("a loss does not broadcast a forgotten axis") {
  Graph graph;
  const Node prediction = graph.input("prediction", {DType::float64, {2, 1}});
  const Node target = graph.input("target", {DType::float64, {2}});
  const std::string text = user_error([&] { squared_error(prediction, target); });
  CHECK(text.find("losses_test.cpp") != std::string::npos);
  CHECK(text.find("one type and shape") != std::string::npos);
}

TEST_CASE("top_k_correct counts no label that names no class") {
  Graph graph;
  const Node logits = logits_of(graph, {2, 2});
  const Node hits = top_k_correct(logits, labels_of(graph, {2}));
  for (Backend* backend : {&test_backend(), &oracle()})
    CHECK(Runner(graph, {hits}, *backend)(
              {Tensor::of<float>({2, 2}, {-1, -1, 5, 0}), Tensor::of<std::int64_t>({2}, {2, 1})})[0]
              .to_doubles()[0] == 0);
}

TEST_CASE("top_k_correct ranks equal logits by class, and a NaN is no hit") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float32, {5, 3}});
  const Node labels = labels_of(graph, {5});
  Runner runner(graph, {top_k_correct(logits, labels), top_k_correct(logits, labels, 2)}, test_backend());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor values = Tensor::of<float>({5, 3}, {1, 1, 1, 1, 1, 1, 0, nan, 2, nan, 0, 2, 3, 2, 1});
  const auto results = runner({values, Tensor::of<std::int64_t>({5}, {0, 1, 2, 0, 7})});
  CHECK(results[0].to_doubles()[0] == 1);  // only row 0
  CHECK(results[1].to_doubles()[0] == 3);  // also row 1, and row 2, whose label ranks after its NaN
}

}  // namespace plexaura::testing::losses_test
