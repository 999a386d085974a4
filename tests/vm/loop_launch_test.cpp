#include "core/vm/loop_launch.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "core/base/profile.h"
#include "core/compile/compile.h"
#include "core/compile/link.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::loop_launch_test {

namespace {

// log() of each row of x, whose rows may be negative.
struct Logarithms {
  Graph graph;
  Node x = graph.input("x", {DType::float32, {4, 16}});
  Node y = scan({x}, {}, [](const auto&, const auto& xs) { return ScanStep{{}, {log(xs[0])}}; }).outputs[0];
  std::shared_ptr<const Program> program =
      compile(graph, std::vector<ProgramOutput>{{.node = y}}, test_backend());
};

Tensor rows(std::vector<float> values) {
  Tensor tensor(TensorType{DType::float32, {4, 16}});
  for (std::size_t i = 0; i < 64; ++i) tensor.as<float>()[i] = values[i / 16];
  return tensor;
}

}  // namespace

TEST_CASE("a watched loop names the step and the op of its body that produced a NaN") {
  Logarithms logarithms;
  VM vm(logarithms.program, test_backend(), {.watch = true});
  vm.run({{"x", rows({1, 2, 3, 4})}});
  const std::string text = user_error([&] { vm.run({{"x", rows({1, 2, -1, 4})}}); });
  CAPTURE(text);
  CHECK(contains(text, "scan %"));
  CHECK(contains(text, "step 2: log %"));
  CHECK(contains(text, "loop_launch_test.cpp"));
  CHECK(contains(text, "produced NaN at element 0"));
}

TEST_CASE("a profile has the instructions of each step of a loop") {
  Logarithms logarithms;
  Profile profile;
  VM vm(logarithms.program, test_backend(), {.profile = &profile});
  vm.run({{"x", rows({1, 2, 3, 4})}});
  const std::string events = profile.events();
  std::size_t logs = 0;
  for (std::size_t at = events.find("log %"); at != std::string::npos; at = events.find("log %", at + 1))
    ++logs;
  CHECK(logs == 4);
}

TEST_CASE("the text and the hash of a program contain the body of its loops") {
  Logarithms logarithms;
  CHECK(contains(logarithms.program->to_text(), "in each of 4 steps, the program on"));
  CHECK(contains(logarithms.program->to_text(), " log %"));
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 16}});
  const Node y = scan({x}, {}, [](const auto&, const auto& xs) {
                   return ScanStep{{}, {exp(xs[0])}};
                 }).outputs[0];
  const auto other = compile(graph, std::vector<ProgramOutput>{{.node = y}}, test_backend());
  CHECK(other->plan_hash() != logarithms.program->plan_hash());
}

TEST_CASE("what depends on neither carries nor xs is computed once, before the steps") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 16}});
  const Node w = graph.input("w", {DType::float32, {16}});
  const Node y = scan({x}, {}, [&](const auto&, const auto& xs) {
                   return ScanStep{{}, {xs[0] * exp(w)}};
                 }).outputs[0];
  const auto program = compile(graph, std::vector<ProgramOutput>{{.node = y}}, test_backend());
  for (const Instruction& instruction : program->instructions)
    if (const auto* loop = std::get_if<LoopWork>(&instruction.work))
      CHECK(loop->body->instructions.size() == 1);
  CHECK(std::ranges::any_of(program->instructions, [](const Instruction& instruction) {
    return instruction.name.starts_with("exp %");
  }));
}

TEST_CASE("all values of a body can be read, stacked, if a program keeps all") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 16}});
  const Node y = scan({x}, {}, [](const auto&, const auto& xs) {
                   return ScanStep{{}, {log(exp(xs[0]))}};
                 }).outputs[0];
  const auto program =
      compile(graph, std::vector<ProgramOutput>{{.node = y}}, test_backend(), {.keep_all = true});
  VM vm(program, test_backend());
  vm.run({{"x", rows({0, 1, 2, 3})}});
  std::vector<double> exponentials;
  for (std::uint32_t output = 0; output < graph.record(y.id()).types.size(); ++output)
    exponentials.push_back(vm.value(Node(graph, {y.id(), output})).to_doubles().back());
  CHECK(std::ranges::any_of(exponentials, [](double value) { return std::abs(value - std::exp(3)) < 1e-5; }));
}

TEST_CASE("a linked program has the constants of the bodies of both programs") {
  const auto scaled = [](double factor) {
    Graph graph;
    const Node gradient = graph.arena_slice({ArenaKind::gradient, 0, 0, 16}, DType::float32);
    const Node next = scan({}, {gradient},
                           [&](const auto& carries, const auto&) {
                             return ScanStep{{carries[0] * factor + 1}, {}};
                           },
                           {.steps = 2})
                          .carries[0];
    graph.update(gradient, next);
    Placement placement;
    placement.append("w", {DType::float32, {16}}, ParameterRole::trainable, Layout::row_major(1));
    return compile(graph, {}, test_backend(), {.placement = &placement});
  };
  const auto program = link(*scaled(2), *scaled(3));
  std::vector<std::int64_t> offsets;
  for (const Instruction& instruction : program->instructions)
    if (const auto* loop = std::get_if<LoopWork>(&instruction.work))
      offsets.push_back(loop->constants.offset);
  REQUIRE(offsets.size() == 2);
  CHECK(offsets[0] != offsets[1]);
}

}  // namespace plexaura::testing::loop_launch_test
