#include "core/compile/tuner.h"

#include <doctest/doctest.h>

#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/pattern.h"
#include "tests/support/two_speeds.h"

namespace plexaura::testing {

namespace {

using namespace std::chrono_literals;

const TensorType type{DType::float32, {4, 6}};

// A program with one relu.
struct Model {
  Graph graph;
  std::vector<ProgramOutput> outputs{{.node = relu(graph.input("x", type)) + 1}};

  // Which kernel the relu got.
  std::string chosen(Backend& backend, Tuner* tuner) const {
    const auto program = compile(graph, outputs, backend, {.tuner = tuner});
    VM vm(program, backend);
    vm.run({{"x", pattern(type.shape).cast(type.dtype)}});
    vm.wait();
    return program->instructions[0].implementation;
  }
};

TwoSpeeds second_is_faster() { return {test_backend(), "relu", 2ms, 0us}; }

}  // namespace

TEST_CASE("without a tuner, and with one that is off, estimates choose") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  CHECK(model.chosen(backend, nullptr) == "first");
  Tuner off(Tuning::off);
  CHECK(model.chosen(backend, &off) == "first");
  CHECK(off.measured() == 0);
}

TEST_CASE("the kernel that is faster when it runs is taken, and is measured once") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  Tuner tuner(Tuning::cached);
  CHECK(model.chosen(backend, &tuner) == "second");
  CHECK(tuner.measured() == 1);
  CHECK(model.chosen(backend, &tuner) == "second");
  CHECK(tuner.measured() == 1);
}

TEST_CASE("times that are known are believed and not measured again, but by who shall measure") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  Tuner before(Tuning::cached);
  model.chosen(backend, &before);

  TwoSpeeds now(test_backend(), "relu", 0us, 2ms);  // the same to look at, other speeds
  Tuner cached(Tuning::cached);
  REQUIRE(cached.add(before.to_text()));
  CHECK(model.chosen(now, &cached) == "second");
  CHECK(cached.measured() == 0);
  CHECK(cached.to_text() == before.to_text());

  Tuner anew(Tuning::measure);
  REQUIRE(anew.add(before.to_text()));
  CHECK(model.chosen(now, &anew) == "first");
  CHECK(anew.measured() == 1);
  REQUIRE(anew.add(before.to_text()));  // what it measured itself stays
  CHECK(model.chosen(now, &anew) == "first");
  CHECK(anew.measured() == 1);
}

TEST_CASE("a frozen tuner measures nothing: what is unknown is estimated") {
  TwoSpeeds backend = second_is_faster();
  const Model model;
  for (const Tuning tuning : {Tuning::cached, Tuning::measure}) {
    Tuner known(tuning);
    CHECK(model.chosen(backend, &known) == "second");
    Tuner frozen(tuning);
    frozen.freeze();
    CHECK(model.chosen(backend, &frozen) == "first");
    REQUIRE(frozen.add(known.to_text()));
    CHECK(model.chosen(backend, &frozen) == "second");
    CHECK(frozen.measured() == 0);
  }
}

TEST_CASE("another type is another thing to measure, an equal node is not") {
  TwoSpeeds backend = second_is_faster();
  Graph graph;
  const Node x = graph.input("x", type);
  const Node y = graph.input("y", {DType::float32, {5}});
  const std::vector<ProgramOutput> outputs{{.node = relu(relu(x) - 1)}, {.node = relu(y)}};
  Tuner tuner(Tuning::cached);
  compile(graph, outputs, backend, {.tuner = &tuner});
  CHECK(tuner.measured() == 2);
}

TEST_CASE("a damaged text is refused and changes nothing") {
  TwoSpeeds backend = second_is_faster();
  Tuner tuner(Tuning::cached);
  Model().chosen(backend, &tuner);
  const std::string text = tuner.to_text();
  Tuner other(Tuning::cached);
  const std::string empty = other.to_text();
  std::string changed = text;
  changed[changed.size() - 2] = changed[changed.size() - 2] == '1' ? '2' : '1';
  for (const std::string& wrong : {std::string(), std::string("times"), text.substr(0, text.size() / 2),
                                   text.substr(0, text.size() - 1), text + "\n", changed}) {
    CAPTURE(wrong);
    CHECK(!other.add(wrong));
  }
  CHECK(other.to_text() == empty);
  CHECK(other.add(text));
  CHECK(other.to_text() == text);
  CHECK(other.add(empty));
}

}  // namespace plexaura::testing
