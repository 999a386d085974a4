#include "core/vm/function.h"

#include <doctest/doctest.h>
#include <memory>
#include <thread>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/gate.h"

namespace plexaura::testing::function_test {

namespace {

const TensorType row{DType::float64, {3}};

Tensor three(double a, double b, double c) { return Tensor::of<double>({3}, {a, b, c}); }

ParameterStore store_of_w() {
  return ParameterStore({{"w", row, ParameterRole::trainable, Initialiser::constant(2)},
                         {"seen", row, ParameterRole::buffer, Initialiser::zeros()}});
}

// Returns x w, and adds x to the buffer `seen` in each call.
Function product_that_counts(ParameterStore& store) {
  Graph graph;
  const Node x = graph.input("x", row);
  const Node seen = graph.buffer("seen", row);
  graph.update(seen, seen + x);
  return {graph, {x}, {x * graph.parameter("w", row)}, test_backend(), &store};
}

bool holds(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a function takes tensors in the order of its inputs and returns its outputs, without the graph") {
  const Function made = [] {
    Graph graph;
    const Node x = graph.input("x", row);
    const Node v = graph.input("v", row);
    const Node loss = sum(square(x) * v);
    return Function(graph, {v, x}, {loss, gradients(loss, {x})[0]}, test_backend());
  }();
  Function f = made.clone();
  const std::vector<Tensor> results = f(three(1, 0, 2), three(3, 4, 5));
  CHECK(results[0] == Tensor::scalar(59.0));
  CHECK(results[1] == three(6, 0, 20));
  Function moved = std::move(f);
  CHECK(moved(three(0, 1, 0), three(3, 4, 5))[0] == Tensor::scalar(16.0));
  CHECK(holds(user_error([&] { f(three(0, 1, 0), three(3, 4, 5)); }), "after it was moved"));
  CHECK(holds(user_error([&] { f.clone(); }), "after it was moved"));
}

TEST_CASE("a function may have no inputs, and inputs that no output needs") {
  Graph graph;
  const Node x = graph.input("x", row);
  Function constant(graph, {}, {graph.constant(three(1, 2, 3)) + 1}, test_backend());
  CHECK(constant()[0] == three(2, 3, 4));
  Function ignores(graph, {x}, {graph.constant(three(1, 2, 3))}, test_backend());
  CHECK(ignores(three(0, 0, 0))[0] == three(1, 2, 3));
}

TEST_CASE("a function reads the weights that its store has at the call, and updates buffers") {
  ParameterStore store = store_of_w();
  Function f = product_that_counts(store);
  CHECK(f(three(1, 2, 3))[0] == three(2, 4, 6));
  store.write("w", three(1, 1, 0));
  CHECK(f(three(1, 2, 3))[0] == three(1, 2, 0));
  CHECK(store.read("seen") == three(2, 4, 6));
}

TEST_CASE("a function and its clones go on after the store was placed anew") {
  ParameterStore store = store_of_w();
  Function f = product_that_counts(store);
  f(three(1, 2, 3));
  store.place(store.complete({}), test_backend());
  Function clone = f.clone();
  CHECK(f(three(1, 2, 3))[0] == three(2, 4, 6));
  CHECK(clone(three(1, 2, 3))[0] == three(2, 4, 6));
  CHECK(store.read("seen") == three(3, 6, 9));
}

TEST_CASE("clones answer several threads at once") {
  Graph graph;
  const Node x = graph.input("x", row);
  const Function f(graph, {x}, {square(x)}, test_backend());
  constexpr int count = 4;
  std::vector<int> right(count, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      Function own = f.clone();
      for (int k = 0; k < 50; ++k)
        if (own(three(i, k, 1))[0] == three(i * i, k * k, 1)) ++right[static_cast<std::size_t>(i)];
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(count, 50));
}

TEST_CASE("random ops draw anew in each call, and a clone begins again") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {64}});
  Function f(graph, {x}, {dropout(x, {.p = 0.5})}, test_backend());
  const Tensor ones = Tensor::of<double>({64}, std::vector<double>(64, 1));
  const Tensor first = f(ones)[0];
  CHECK(!(f(ones)[0] == first));
  CHECK(f.clone()(ones)[0] == first);
}

TEST_CASE("a function keeps a shared backend, and notices that another one is gone") {
  Graph graph;
  const Node x = graph.input("x", row);
  std::shared_ptr<Backend> shared = open_backend("portable");
  Function f(graph, {x}, {x + 1}, *shared);
  shared.reset();
  CHECK(f(three(1, 2, 3))[0] == three(2, 3, 4));
  std::unique_ptr<Backend> own = open_backend("portable");
  Function left(graph, {x}, {x + 1}, *own);
  own.reset();
  const std::string text = "the backend was destroyed before what was made for it";
  CHECK(user_error([&] { left(three(1, 2, 3)); }).starts_with(text));
  CHECK(user_error([&] { left.clone(); }).starts_with(text));
}

TEST_CASE("a function refuses a call while another thread is in one") {
  Graph graph;
  const Node x = graph.input("x", row);
  Function f(graph, {x}, {gated(x)}, oracle());
  while_running(
      [&] { f(three(1, 2, 3)); },
      [&] {
        CHECK(user_error([&] { f(three(1, 2, 3)); }) ==
              "a Function serves one thread at a time, and another thread is in it now; clone() one "
              "for each thread");
      });
  CHECK(f(three(4, 5, 6))[0] == three(4, 5, 6));
}

TEST_CASE("what a function refuses") {
  Graph graph;
  Graph other;
  const Node x = graph.input("x", row);
  const Node y = graph.input("y", row);
  const Node far = other.input("x", row);
  const auto refused = [&](const std::vector<Node>& inputs, const std::vector<Node>& outputs) {
    return user_error([&] { Function(graph, inputs, outputs, test_backend()); });
  };
  CHECK(holds(refused({x}, {}), "there is no output"));
  CHECK(holds(refused({x}, {x + y}), "the outputs need the input 'y'"));
  CHECK(holds(refused({x, x}, {x}), "the input 'x' is listed twice"));
  CHECK(holds(refused({exp(x)}, {x}), "is no input of the graph"));
  CHECK(holds(refused({far}, {x}), "belongs to another graph"));
  CHECK(holds(refused({x}, {far}), "belongs to another graph"));
  CHECK(holds(refused({x}, {Node()}), "an empty Node was used as a value"));
  CHECK(holds(refused({x}, {x * graph.parameter("w", row)}), "give it the store"));
  Function f(graph, {x, y}, {x + y}, test_backend());
  CHECK(holds(user_error([&] { f(three(1, 2, 3)); }), "of 2 inputs was called with 1 tensors"));
  CHECK(holds(user_error([&] { f(three(1, 2, 3), Tensor::of<double>({2}, {1, 2})); }), "'y'"));
}

TEST_CASE("evaluate returns one value and changes no buffer") {
  ParameterStore store = store_of_w();
  Graph graph;
  const Node x = graph.input("x", row);
  const Node seen = graph.buffer("seen", row);
  graph.update(seen, seen + x);
  const Tensor ones = three(1, 1, 1);
  CHECK(evaluate(x * graph.parameter("w", row) + seen, {{"x", ones}}, test_backend(), &store) ==
        three(2, 2, 2));
  CHECK(store.read("seen") == three(0, 0, 0));
  CHECK(holds(user_error([&] { evaluate(x + 1, {}, test_backend()); }), "'x' was not fed"));
}

}  // namespace plexaura::testing::function_test
