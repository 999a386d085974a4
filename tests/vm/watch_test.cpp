#include "core/vm/watch.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/compile/compile.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/matmul.h"
#include "tests/support/backend.h"

namespace plexaura::testing::watch_test {

namespace {

// Returns detail_of() the instruction that computes the last op of a graph, as if it had taken a nanosecond.
// The numbers are then GB/s as it reads and writes bytes, and GFLOP/s as it does operations.
std::string detail_in_a_nanosecond(const Node& node) {
  const std::vector<ProgramOutput> outputs{{.node = node}};
  const auto program = compile(node.graph(), outputs, test_backend());
  const std::string name(node.graph().record(node.id()).op->name());
  for (const Instruction& instruction : program->instructions)
    if (instruction.name.starts_with(name + " %")) return detail_of(*program, instruction, 1e-3);
  return "no instruction of " + name;
}

void check_end(const std::string& text, const std::string& end) { CHECK_MESSAGE(text.ends_with(end), text); }

}  // namespace

TEST_CASE("an instruction's traffic is what it reads and writes") {
  Graph graph;
  const Node a = graph.input("a", {DType::float32, {10}});
  const Node b = graph.input("b", {DType::float32, {10}});
  check_end(detail_in_a_nanosecond(a + b), " (float32[10], float32[10]) 120.0 GB/s");
}

TEST_CASE(
    "a product has two operations for each product of elements, a convolution in all three directions") {
  Graph graph;
  const Node a = graph.input("a", {DType::float32, {4, 5}});
  const Node b = graph.input("b", {DType::float32, {5, 6}});
  check_end(detail_in_a_nanosecond(matmul(a, b)), fmt::format(" {}.0 GFLOP/s", 2 * 4 * 5 * 6));
  const Node x = graph.input("x", {DType::float32, {2, 3, 5, 5}});
  const Node w = graph.input("w", {DType::float32, {4, 3, 3, 3}});
  const Node grad = graph.input("grad", {DType::float32, {2, 4, 3, 3}});
  const std::string each = fmt::format(" {}.0 GFLOP/s", 2 * (2 * 4 * 3 * 3) * (3 * 3 * 3));
  check_end(detail_in_a_nanosecond(conv2d(x, w)), each);
  check_end(detail_in_a_nanosecond(conv2d_input_grad(w, grad, {5, 5}, {})), each);
  check_end(detail_in_a_nanosecond(conv2d_weight_grad(x, grad, {3, 3}, {})), each);
}

}  // namespace plexaura::testing::watch_test
