// Tests smaller promises of WeightsImmigration: the arenas of values and gradients may be given by the user;
// weights are read and written in the user's form whatever their layout; values derived from parameters are
// computed again when these change.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <doctest/doctest.h>

#include "core/device/transfer.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/vm/vm.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::border_test {

namespace {

const TensorType filter{DType::float32, {3, 3, 1, 1}};

LossOutputs model(Graph& graph, const Node& x, const Node& t) {
  const Node y = conv2d(conv2d(x, graph.parameter("a", filter)), graph.parameter("b", filter));
  return {squared_error(flatten(y), flatten(t))};
}

std::vector<ParameterSpec> specs() {
  return {{"a", filter, ParameterRole::trainable, Initialiser::uniform(1)},
          {"b", filter, ParameterRole::trainable, Initialiser::uniform(1)}};
}

Batch some_batch() {
  return {whole_numbers({DType::float32, {2, 3, 2, 2}}, 7), whole_numbers({DType::float32, {2, 3, 2, 2}}, 8)};
}

// Memory that another object owns.
class Borrowed final : public Memory {
 public:
  Borrowed(std::byte* address, std::size_t bytes) : address_(address), bytes_(bytes) {}
  Address address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::byte* address_;
  std::size_t bytes_;
};

// Returns a placement in which images are channels last and padded, unlike the user's form.
Placement padded(const Placement& from) {
  Placement placement;
  for (const Placement::Entry& entry : from.entries)
    placement.append(entry.name, entry.type, entry.role, Layout({0, 2, 3, 1}, {{1, 8}}));
  return placement;
}

std::vector<std::byte> values_of(const ParameterStore& store) {
  std::vector<std::byte> values(store.placement().bytes(ArenaKind::value));
  copy_to_host(store.backend(), values.data(), store.values(), values.size());
  return values;
}

}  // namespace

TEST_CASE("gradients lie in memory that is provided for them, whatever it held") {
  if (!test_backend().info().host_memory) return;  // a device with its own memory cannot use other memory
  alignas(64) static std::array<std::byte, 1 << 12> window;
  window.fill(std::byte{0xff});
  std::size_t asked = 0;
  SmallTraining given(test_backend(), specs(), model, some_batch(),
                      {.sizes = {2}, .gradient_memory = [&](std::size_t bytes) {
                         asked = bytes;
                         return std::make_unique<Borrowed>(window.data(), bytes);
                       }});
  SmallTraining own(test_backend(), specs(), model, some_batch(), {.sizes = {2}});
  CHECK(given.store().gradients() == window.data());
  CHECK(asked == given.store().placement().bytes(ArenaKind::gradient));
  for (int i = 0; i < 2; ++i) CHECK(given.step(some_batch(), 0.01).loss == own.step(some_batch(), 0.01).loss);
  check_same_values(given.store(), own.store());
  CHECK(reinterpret_cast<const float*>(window.data())[0] != 0);
}

TEST_CASE("weights leave and enter in logical layout, before the first step and after an update") {
  SmallTraining own(test_backend(), specs(), model, some_batch(), {.sizes = {2}});
  const Placement placement = padded(own.store().placement());
  struct Halving final : Strategy, WeightExchange {
    StrategyParts parts() override { return {.weights = this}; }
    void after_update() override {
      for (const auto& entry : border->entries()) {
        Tensor value = border->emigrate(entry.name);
        for (float& element : value.as<float>()) element /= 2;
        border->immigrate(entry.name, value);
        CHECK(border->emigrate(entry.name) == value);
      }
    }
    WeightsImmigration* border = nullptr;
  };
  Halving on_padded;
  Halving on_own;
  SmallTraining run(test_backend(), specs(), model, some_batch(),
                    {.strategy = &on_padded, .sizes = {2}, .placement = &placement});
  SmallTraining plain(test_backend(), specs(), model, some_batch(), {.strategy = &on_own, .sizes = {2}});
  on_padded.border = &run.steps().border();
  on_own.border = &plain.steps().border();
  for (SmallTraining* training : {&run, &plain})
    training->steps().border().immigrate("a", whole_numbers(filter, 5));
  CHECK(run.steps().border().emigrate("a") == whole_numbers(filter, 5));
  for (int i = 0; i < 3; ++i) {
    run.step(some_batch(), 0.01);
    plain.step(some_batch(), 0.01);
    for (const char* name : {"a", "b"}) {
      const auto left = run.value(name).to_doubles();
      const auto right = plain.value(name).to_doubles();
      for (std::size_t k = 0; k < left.size(); ++k) CHECK(left[k] == doctest::Approx(right[k]).epsilon(1e-5));
    }
  }
  CHECK(user_error([&] {
          run.store().write("a", Tensor({DType::float32, {3, 3}}));
        }).find("'a'") != std::string::npos);
}

TEST_CASE("what derives from parameters alone is computed when they changed, and not else") {
  Graph graph(Mode::inference);
  const Node w = graph.parameter("a", filter);
  const Node doubled = w * 2 + 1;
  const std::vector<ProgramOutput> outputs{
      {.node = conv2d(graph.input("x", some_batch().x.type()), doubled)}};
  SmallTraining run(test_backend(), specs(), model, some_batch(), {.sizes = {2}});
  const auto program = compile(graph, outputs, test_backend(), {.placement = &run.store().placement()});
  CHECK(!program->prologue.empty());
  VM vm(program, test_backend(), {.store = &run.store()});
  const auto expected = [&] {
    Graph plain;
    const Node given = plain.input("w", filter);
    const std::vector<ProgramOutput> result{
        {.node = conv2d(plain.input("x", some_batch().x.type()), given * 2 + 1)}};
    VM reference(compile(plain, result, oracle()), oracle());
    reference.run({{"w", run.value("a")}, {"x", some_batch().x}});
    return reference.output().to_doubles();
  };
  const auto check = [&] {
    vm.run({{"x", some_batch().x}});
    const auto values = vm.output().to_doubles();
    const auto wanted = expected();
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
  };
  check();
  check();
  run.store().write("a", whole_numbers(filter, 3));
  check();
  run.step(some_batch(), 0.01);
  check();
  const std::span<std::byte> values = run.steps().border().fetch_values();
  std::ranges::fill(values, std::byte{0});
  run.steps().border().store_values();
  check();
}

TEST_CASE("all weights can be read and written where the host can reach them") {
  SmallTraining run(test_backend(), specs(), model, some_batch(), {.sizes = {2}});
  WeightsImmigration& border = run.steps().border();
  const std::span<std::byte> values = border.fetch_values();
  CHECK(std::ranges::equal(values, values_of(run.store())));
  if (test_backend().info().host_memory) CHECK(values.data() == run.store().values());
  run.step(some_batch(), 0.01);
  const std::span<std::byte> again = border.fetch_values();
  CHECK(again.data() == values.data());
  CHECK(std::ranges::equal(again, values_of(run.store())));
  const std::uint64_t version = run.store().version();
  std::ranges::fill(again, std::byte{0});
  border.store_values();
  CHECK(run.store().version() > version);
  for (const char* name : {"a", "b"}) CHECK(run.value(name) == Tensor(filter));
}

}  // namespace plexaura::testing::border_test
