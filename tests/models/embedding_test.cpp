#include "models/layers/embedding.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "models/layers/linear.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::embedding_test {

namespace {

Tensor indices(const std::vector<std::int64_t>& numbers) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

}  // namespace

TEST_CASE("an embedding takes a row for each index, and the row of the padding gets no gradient") {
  layers::Embedding embedding(3, 2, {.padding = -2});
  ParameterStore store = make_store(embedding, DType::float64, 1);
  store.write("weight", Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  Graph graph;
  const Node y = embedding(graph.input("x", {DType::int64, {4}}));
  const Node weight = embedding.weight().in(graph);
  const auto results =
      run_graph(graph, store, {y, gradients(sum(y), {weight})[0]}, {{"x", indices({2, 1, 0, 2})}});
  check_close(results[0], {5, 6, 3, 4, 1, 2, 5, 6});
  check_close(results[1], {1, 1, 0, 0, 2, 2});
}

TEST_CASE("the rows of an embedding start normally, and that of the padding as zeros") {
  layers::Embedding embedding(50, 20, {.padding = 7});
  const ParameterStore store = make_store(embedding, DType::float64, 1);
  const std::vector<double> values = store.read("weight").to_doubles();
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += values[i] * values[i];
    CHECK((values[i] == 0) == (i / 20 == 7));
  }
  CHECK(squares / 980 == doctest::Approx(1).epsilon(0.2));
}

TEST_CASE("an embedding and a linear layer share a weight") {
  struct Tied : Module {
    layers::Embedding words{5, 3};
    layers::Linear out{3, 5, {.bias = false, .tied_weight = &words.weight()}};
    void members(MemberVisitor& visit) override {
      visit("words", words);
      visit("out", out);
    }
  } model;
  CHECK(specs_of(model, DType::float32).size() == 1);
}

TEST_CASE("positions are added to a sequence, and a shorter one gets the first of them") {
  layers::Positions positions(3, 2);
  ParameterStore store = make_store(positions, DType::float64, 1);
  store.write("weight", Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 2, 2}});
  const Tensor zeros(x.type());
  check_close(run_graph(graph, store, {positions(x)}, {{"x", zeros}})[0], {1, 2, 3, 4, 1, 2, 3, 4});
  const Node longer = graph.input("longer", {DType::float64, {1, 4, 2}});
  CHECK(user_error([&] {
          positions(longer);
        }).ends_with(": positions of [3,2] are given float64[1,4,2]; they take [N, at most 3 steps, 2]"));
}

TEST_CASE("one position takes one element of each sequence") {
  layers::Positions positions(3, 2);
  specs_of(positions, DType::float64);
  Graph graph;
  const Node position = graph.input("position", {DType::int64, {}});
  for (const Shape& shape : {Shape{2, 3, 2}, Shape{1, 2}, Shape{2, 1, 1}}) {
    const Node x = graph.input("x" + to_string(shape), {DType::float64, shape});
    CHECK(
        user_error([&] {
          positions.next(x, position);
        }).ends_with(": one position of [3,2] is given float64" + to_string(shape) + "; it takes [N, 1, 2]"));
  }
}

TEST_CASE("a padding that is no index is refused") {
  CHECK(user_error([] { layers::Embedding(3, 2, {.padding = 3}); }) ==
        "an embedding of 3 words has the padding 3; it must be from -3 to 2");
}

}  // namespace plexaura::testing::embedding_test
