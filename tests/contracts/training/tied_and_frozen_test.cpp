// A tied parameter is one entry with several names, and its gradient is the sum over its uses. Frozen
// parameters are placed after all others and have no gradient and no state. A change of the frozen set makes
// a new placement by name, and keeps values and state.

#include <doctest/doctest.h>

#include "core/exchange/weights_immigration.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::tied_and_frozen_test {

namespace {

const TensorType square_type{DType::float32, {4, 4}};
const TensorType filter{DType::float32, {3, 3, 1, 1}};

ParameterSpec spec(std::string name, TensorType type, ParameterRole role = ParameterRole::trainable) {
  return {std::move(name), std::move(type), role, Initialiser::zeros()};
}

void fill(ParameterStore& store) {
  std::uint64_t seed = 1;
  for (const ParameterSpec& spec : store.specs()) store.write(spec.name, whole_numbers(spec.type, seed++, 1));
}

// A model with two layers that share one weight, or have two weights with equal initial values.
SmallTraining::Model twice(bool tied) {
  return [tied](Graph& graph, const Node& x, const Node& t) -> LossOutputs {
    const Node first = graph.parameter("encoder", square_type);
    const Node second = graph.parameter(tied ? "encoder" : "decoder", square_type);
    return {squared_error(matmul(matmul(x, first), second), t)};
  };
}

LossOutputs three_filters(Graph& graph, const Node& x, const Node& t) {
  Node y = x;
  for (const char* name : {"a", "b", "c"}) y = conv2d(y, graph.parameter(name, filter));
  return {squared_error(flatten(y), flatten(t))};
}

}  // namespace

TEST_CASE("the gradient of a tied parameter is the sum over its uses") {
  const Batch batch{whole_numbers({DType::float32, {4, 4}}, 7), whole_numbers({DType::float32, {4, 4}}, 8)};
  std::vector<ParameterSpec> tied_specs{spec("encoder", square_type)};
  tied_specs[0].aliases = {"decoder"};
  SmallTraining tied(test_backend(), tied_specs, twice(true), batch, {});
  SmallTraining apart(test_backend(), {spec("encoder", square_type), spec("decoder", square_type)},
                      twice(false), batch, {});
  const Tensor start = whole_numbers(square_type, 1, 1);
  tied.store().write("decoder", start);  // under either name
  CHECK(tied.value("encoder") == start);
  for (const char* name : {"encoder", "decoder"}) apart.store().write(name, start);
  CHECK(tied.step(batch, 0).loss == apart.step(batch, 0).loss);
  CHECK(tied.store().placement().entries.size() == 1);
  const auto sum = tied.store().read_gradient("decoder").to_doubles();
  const auto first = apart.store().read_gradient("encoder").to_doubles();
  const auto second = apart.store().read_gradient("decoder").to_doubles();
  for (std::size_t i = 0; i < sum.size(); ++i) CHECK(sum[i] == first[i] + second[i]);
}

TEST_CASE("frozen parameters lie behind all others and never change") {
  const Batch batch{whole_numbers({DType::float32, {2, 3, 2, 2}}, 7),
                    whole_numbers({DType::float32, {2, 3, 2, 2}}, 8)};
  SmallTraining run(test_backend(),
                    {spec("a", filter), spec("b", filter, ParameterRole::frozen), spec("c", filter)},
                    three_filters, batch, {.optimizer = {.momentum = 0.5}, .sizes = {2}});
  fill(run.store());
  const Tensor before = run.value("b");
  for (int i = 0; i < 3; ++i) run.step(batch, 0.0625);
  CHECK(run.value("b") == before);
  CHECK(run.store().placement().entries.back().name == "b");
  CHECK(run.store().placement().entries[0].name == "c");  // the backward pass finishes it first
  CHECK(user_error([&] { run.store().read_gradient("b"); }).find("frozen") != std::string::npos);
  for (const auto& entry : run.steps().border().entries()) {
    CAPTURE(entry.name);
    CHECK(entry.bucket.has_value() == (entry.name != "b"));
    CHECK((entry.gradient_bytes > 0) == (entry.name != "b"));
  }
}

TEST_CASE("changing the frozen set keeps values and state by name") {
  const Batch batch{whole_numbers({DType::float32, {2, 3, 2, 2}}, 7),
                    whole_numbers({DType::float32, {2, 3, 2, 2}}, 8)};
  SmallTraining run(test_backend(), {spec("a", filter), spec("b", filter), spec("c", filter)}, three_filters,
                    batch, {.optimizer = {.momentum = 0.5}, .sizes = {2}});
  fill(run.store());
  run.step(batch, 0.0625);
  ParameterStore& store = run.store();
  std::vector<Tensor> values;
  std::vector<Tensor> states;
  for (const char* name : {"a", "b", "c"}) {
    values.push_back(store.read(name));
    states.push_back(store.read_state(0, name));
  }

  store.set_trainable("c", false);
  Graph graph;
  const auto outputs = training_outputs(
      graph, three_filters(graph, graph.input("x", batch.x.type()), graph.input("t", batch.t.type())), store,
      2);
  store.place(compile(graph, outputs, test_backend(), {.apply_updates = false})->placement, test_backend());
  CHECK(store.placement().entries.back().name == "c");
  for (std::size_t i = 0; i < 3; ++i) {
    const char* names[] = {"a", "b", "c"};
    CHECK(store.read(names[i]) == values[i]);
    if (i < 2) CHECK(store.read_state(0, names[i]) == states[i]);
  }
  CHECK(user_error([&] { store.read_state(0, "c"); }).find("frozen") != std::string::npos);
  // Programs made for the old placement are refused.
  CHECK(user_error([&] {
          run.launch(std::span(&batch, 1), 0.1);
          run.metrics();
        }).find("placed anew") != std::string::npos);
}

}  // namespace plexaura::testing::tied_and_frozen_test
