// An op without a kernel on the backend is an error that names the node and the backend; nothing falls back
// in silence.

#include <doctest/doctest.h>

#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::missing_kernel_test {

namespace {

struct Unheard final : Op {
  std::string_view name() const override { return "unheard_of"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
};

}  // namespace

TEST_CASE("a missing kernel is named with its node and the backend") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const int line = __LINE__ + 1;
  const Node y = apply(std::make_shared<Unheard>(), {x * 2});
  const std::vector<ProgramOutput> outputs{{.node = y + 1}};
  for (const bool optimise : {true, false}) {
    const std::string text =
        user_error([&] { compile(graph, outputs, test_backend(), {.optimise = optimise}); });
    CAPTURE(text);
    CHECK(text.find("unheard_of %") != std::string::npos);
    CHECK(text.find("missing_kernel_test.cpp:" + std::to_string(line)) != std::string::npos);
    CHECK(text.find("'" + test_backend().info().name + "'") != std::string::npos);
    CHECK(text.find("has no kernel") != std::string::npos);
    CHECK(text.find("give the op a member compute()") != std::string::npos);
  }
}

TEST_CASE("one whose result nobody needs is not missed") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  apply(std::make_shared<Unheard>(), {x});
  const std::vector<ProgramOutput> outputs{{.node = x + 1}};
  CHECK(compile(graph, outputs, test_backend())->instructions.size() == 1);
}

}  // namespace plexaura::testing::missing_kernel_test
