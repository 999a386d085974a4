#include "core/ops/vector_losses.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::vector_losses_test {

namespace {

using reference::at;

double distance_of_rows(const Tensor& a, const Tensor& b, std::int64_t row, double p) {
  double total = 0;
  for (std::int64_t i = 0; i < a.shape()[1]; ++i) {
    const double size = std::fabs(at(a, row, i) - at(b, row, i) + 1e-6);
    total = std::isinf(p) ? std::max(total, size) : total + std::pow(size, p);
  }
  return std::isinf(p) ? total : std::pow(total, 1 / p);
}

Tensor triplets(std::span<const Tensor> x, const TripletMarginOptions& options) {
  Tensor losses = reference::zeros({x[0].shape()[0]});
  for (std::int64_t row = 0; row < losses.elements(); ++row) {
    double far = distance_of_rows(x[0], x[2], row, options.p);
    if (options.swap) far = std::min(far, distance_of_rows(x[1], x[2], row, options.p));
    at(losses, row) = std::max(0.0, options.margin + distance_of_rows(x[0], x[1], row, options.p) - far);
  }
  if (options.reduction == Reduction::none) return losses;
  return reference::reduce(losses, {},
                           options.reduction == Reduction::sum ? reference::sum : reference::mean);
}

// The positive vectors are far from the anchors, unless another range is given for these.
OpCase triplet_case(const std::string& name, const TripletMarginOptions& options,
                    const Values& anchors = between(-1, -0.5)) {
  return {"triplet_margin, " + name,
          "relu",
          [=](Graph&, auto x) { return std::vector{triplet_margin(x[0], x[1], x[2], options)}; },
          {{{3, 4}, anchors}, {{3, 4}, between(2, 3)}, {{3, 4}, between(0, 0.5)}},
          [=](auto x) { return std::vector{triplets(x, options)}; }};
}

const std::vector<double> embedding_targets{1, -1, -1, 0};  // the last one gives a loss of 0

Tensor embeddings(std::span<const Tensor> x, double margin, Reduction reduction) {
  Tensor losses = reference::zeros({x[0].shape()[0]});
  for (std::int64_t row = 0; row < losses.elements(); ++row) {
    double product = 0;
    double square_a = 0;
    double square_b = 0;
    for (std::int64_t i = 0; i < x[0].shape()[1]; ++i) {
      product += at(x[0], row, i) * at(x[1], row, i);
      square_a += at(x[0], row, i) * at(x[0], row, i);
      square_b += at(x[1], row, i) * at(x[1], row, i);
    }
    const double cosine = product / std::sqrt(square_a * square_b);
    if (embedding_targets[static_cast<std::size_t>(row)] == 1) at(losses, row) = 1 - cosine;
    if (embedding_targets[static_cast<std::size_t>(row)] == -1)
      at(losses, row) = std::max(0.0, cosine - margin);
  }
  if (reduction == Reduction::none) return losses;
  return reference::reduce(losses, {}, reduction == Reduction::sum ? reference::sum : reference::mean);
}

OpCase embedding_case(double margin, Reduction reduction, const Values& of_b) {
  return {"cosine_embedding, " + std::string(name_of(reduction)),
          "relu",
          [=](Graph& graph, auto x) {
            const Node targets = graph.constant(Tensor::of<double>({4}, embedding_targets));
            return std::vector{cosine_embedding(x[0], x[1], cast(targets, x[0].dtype()), margin, reduction)};
          },
          {{{4, 3}, between(0.5, 1)}, {{4, 3}, of_b}},
          [=](auto x) { return std::vector{embeddings(x, margin, reduction)}; }};
}

const Cases cases({
    embedding_case(0, Reduction::mean, between(0.2, 1)),
    embedding_case(0.25, Reduction::sum, between(0.2, 1)),
    embedding_case(2, Reduction::none, between(-1, -0.2)),
    triplet_case("mean", {}),
    triplet_case("sum, p = 1", {.margin = 0.3, .p = 1, .reduction = Reduction::sum}),
    triplet_case("none, p = 3", {.p = 3, .reduction = Reduction::none}),
    triplet_case("the distance of the anchor is smaller",
                 {.margin = 5, .swap = true, .reduction = Reduction::none}),
    triplet_case("the distance of the positive is smaller",
                 {.margin = 5, .swap = true, .reduction = Reduction::none}, between(-5, -4)),
    triplet_case("0 beyond the margin", {.margin = -9}),
});

Node vectors(Graph& graph, const std::string& name, Shape shape) {
  return graph.input(name, {DType::float32, std::move(shape)});
}

WrongCase of_options(const std::string& name, const TripletMarginOptions& options, const std::string& words) {
  return {"triplet_margin, " + name,
          "triplet_margin",
          [=](Graph& graph) {
            const Node x = vectors(graph, "x", {2, 3});
            triplet_margin(x, x, x, options);
          },
          {words}};
}

WrongCase of_embedding(const std::string& name, Shape a, Shape target, double margin,
                       const std::string& words) {
  return {"cosine_embedding, " + name,
          "cosine_embedding",
          [=](Graph& graph) {
            const Node x = vectors(graph, "x", a);
            cosine_embedding(x, x, vectors(graph, "y", target), margin);
          },
          {words}};
}

const WrongCases wrong({
    of_embedding("another target", {2, 3}, {3}, 0, "the target must be float32[2], a number for each vector"),
    of_embedding("scalars", {}, {}, 0, "the operands need an axis"),
    of_embedding("no margin", {2, 3}, {2}, std::nan(""), "the margin must be a finite number, not nan"),
    {"triplet_margin, two shapes",
     "triplet_margin",
     [](Graph& graph) {
       const Node x = vectors(graph, "x", {2, 3});
       triplet_margin(x, vectors(graph, "y", {3}), x);
     },
     {"triplet_margin(float32[2,3], float32[3], float32[2,3])", "one type and shape", "reshape"}},
    {"triplet_margin, scalars",
     "triplet_margin",
     [](Graph& graph) {
       const Node x = vectors(graph, "x", {});
       triplet_margin(x, x, x);
     },
     {"the operands need an axis"}},
    {"triplet_margin, integers",
     "triplet_margin",
     [](Graph& graph) {
       const Node x = graph.input("x", {DType::int64, {2, 3}});
       triplet_margin(x, x, x);
     },
     {"must be floating", "cast()"}},
    of_options("no margin", {.margin = std::nan("")}, "the margin must be a finite number, not nan"),
    of_options("p = 0", {.p = 0}, "p must be above 0, not 0"),
    of_options("p = -1", {.p = -1}, "p must be above 0, not -1"),
    of_options("an infinite epsilon", {.epsilon = std::numeric_limits<double>::infinity()},
               "epsilon must be a finite number, not inf"),
});

}  // namespace

TEST_CASE("losses of vectors: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("losses of vectors: what they refuse") { check_all(wrong); }

TEST_CASE("triplets of any rank have the losses of the matrix of their vectors") {
  Graph graph;
  std::vector<Node> values;
  std::vector<Node> matrices;
  for (const std::string name : {"anchor", "positive", "negative"}) {
    values.push_back(vectors(graph, name, {2, 3, 4}));
    matrices.push_back(reshape(values.back(), {6, 4}));
  }
  const auto losses = [](const std::vector<Node>& of) {
    return triplet_margin(of[0], of[1], of[2], {.margin = 5, .swap = true, .reduction = Reduction::none});
  };
  Random random(7);
  std::vector<Tensor> inputs;
  for (const Node& value : values) inputs.push_back(random.tensor(value.type(), -1, 1));
  const auto results = Runner(graph, {losses(values), losses(matrices)}, test_backend())(inputs);
  CHECK(results[0].shape() == Shape{2, 3});
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(results[0].to_doubles()[i] == doctest::Approx(results[1].to_doubles()[i]));
}

TEST_CASE("the mean loss of no triplets is 0") {
  Graph graph;
  const Node x = vectors(graph, "x", {0, 2});
  const auto results = Runner(graph, {triplet_margin(x, x, x)}, test_backend())({Tensor(x.type())});
  CHECK(results[0].to_doubles() == std::vector<double>{0});
}

}  // namespace plexaura::testing::vector_losses_test
