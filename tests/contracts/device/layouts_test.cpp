// All programs on one store use the placement of the store, which the first program makes or which is given. The
// layouts in it change results only by rounding.

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"

namespace plexaura::testing::layouts_test {

namespace {

const TensorType conv_type{DType::float32, {16, 3, 3, 3}};
const TensorType next_type{DType::float32, {5, 16, 3, 3}};
const TensorType out_type{DType::float32, {20, 2}};

Node forward(Graph& graph, const Node& x) {
  const Node hidden = relu(conv2d(x, graph.parameter("conv", conv_type)));
  const Node more = tanh(conv2d(hidden, graph.parameter("next", next_type)));
  return matmul(flatten(more), graph.parameter("out", out_type));
}

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  return {squared_error(forward(graph, x), t)};
}

std::vector<ParameterSpec> specs() {
  return {{"conv", conv_type, ParameterRole::trainable, Initialiser::he_normal()},
          {"next", next_type, ParameterRole::trainable, Initialiser::he_normal()},
          {"out", out_type, ParameterRole::trainable, Initialiser::he_normal()}};
}

Batch some_batch(std::int64_t samples) {
  return {whole_numbers({DType::float32, {samples, 3, 6, 6}}, 1),
          whole_numbers({DType::float32, {samples, 2}}, 2)};
}

// Returns the placement with the same entries in the same order, and this layout for all filters.
Placement with_layout(const Placement& from, const Layout& filters) {
  Placement placement;
  placement.types = from.types;
  for (const Placement::Entry& entry : from.entries)
    placement.append(entry.name, entry.type, entry.role,
                     entry.type.shape.rank() == 4 ? filters : entry.layout);
  return placement;
}

// Other layouts may bring other kernels, which add in another order.
void check_close(const Tensor& a, const Tensor& b) {
  const auto left = a.to_doubles();
  const auto right = b.to_doubles();
  REQUIRE(left.size() == right.size());
  double largest = 0;
  for (const double value : left) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < left.size(); ++i) CHECK(std::abs(left[i] - right[i]) < 1e-5 * largest);
}

const Layout row_major = Layout::row_major(4);
const Layout channels_last({0, 2, 3, 1}, {{1, 8}});
const Layout blocked({0, 1, 2, 3}, {{0, 16}, {1, 4}});

}  // namespace

TEST_CASE("a placement from elsewhere, in any layout, trains alike") {
  const Batch batch = some_batch(4);
  constexpr double rate = 1e-3;  // a larger one amplifies what rounding leaves of a difference
  const SmallTraining::Options options{.optimizer = {.momentum = 0.9}};
  SmallTraining own(test_backend(), specs(), model, batch, options);
  for (int i = 0; i < 3; ++i) own.step(batch, rate);
  for (const Layout& layout : {row_major, channels_last, blocked}) {
    CAPTURE(to_string(layout));
    const Placement placement = with_layout(own.store().placement(), layout);
    SmallTraining::Options given = options;
    given.placement = &placement;
    SmallTraining other(test_backend(), specs(), model, batch, given);
    CHECK(other.store().placement() == placement);
    for (int i = 0; i < 3; ++i) other.step(batch, rate);
    for (const ParameterSpec& spec : specs()) {
      check_close(other.value(spec.name), own.value(spec.name));
      check_close(other.store().read_gradient(spec.name), own.store().read_gradient(spec.name));
      check_close(other.store().read_state(0, spec.name), own.store().read_state(0, spec.name));
    }
  }
}

TEST_CASE("a validation program of another batch size shares the store of the training program") {
  const Batch batch = some_batch(4);
  const Batch one = some_batch(1);
  for (const bool foreign : {false, true}) {
    CAPTURE(foreign);
    SmallTraining own(test_backend(), specs(), model, batch, {});
    const Placement placement = with_layout(own.store().placement(), blocked);
    SmallTraining training(test_backend(), specs(), model, batch,
                           {.placement = foreign ? &placement : nullptr});
    Graph graph(Mode::inference);
    const std::vector<ProgramOutput> outputs{{.node = forward(graph, graph.input("x", one.x.type()))}};
    const auto program =
        compile(graph, outputs, test_backend(), {.placement = &training.store().placement()});
    VM validation(program, test_backend(), {.store = &training.store()});
    for (int i = 0; i < 3; ++i) {
      validation.run({{"x", one.x}});
      const Tensor before = validation.output();
      training.step(batch, 0.01);
      validation.run({{"x", one.x}});
      const Tensor after = validation.output();
      CHECK(!(before == after));  // the prologue, if there is one, ran again

      ParameterStore copy(specs());
      for (const ParameterSpec& spec : specs()) copy.write(spec.name, training.value(spec.name));
      Graph expected_graph(Mode::inference);
      const std::vector<ProgramOutput> expected_outputs{
          {.node = forward(expected_graph, expected_graph.input("x", one.x.type()))}};
      VM expected(compile(expected_graph, expected_outputs, oracle()), oracle(), {.store = &copy});
      expected.run({{"x", one.x}});
      check_close(after, expected.output());
    }
  }
}

TEST_CASE("a program that was compiled with another placement is refused by name") {
  const Batch batch = some_batch(4);
  SmallTraining training(test_backend(), specs(), model, batch, {});
  const Placement other = with_layout(training.store().placement(), blocked);
  Graph graph(Mode::inference);
  const std::vector<ProgramOutput> outputs{{.node = forward(graph, graph.input("x", batch.x.type()))}};
  const auto program = compile(graph, outputs, test_backend(), {.placement = &other});
  CHECK_THROWS_WITH_AS(VM(program, test_backend(), {.store = &training.store()}),
                       doctest::Contains("at another place than the store"), UserError);
}

}  // namespace plexaura::testing::layouts_test
