#include "core/ops/unary_op_of.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::unary_op_of_test {

namespace {

struct Softsign final : UnaryOpOf<Softsign> {
  std::string_view name() const override { return "my_softsign"; }
  double value(double x) const { return x / (1 + std::abs(x)); }
  Node slope(const Node& x) const { return 1 / square(1 + abs(x)); }
};

Node softsign(Operand x) { return apply(std::make_shared<Softsign>(), {x}); }

struct BumpOptions {
  double width = 1;
  static void fields(auto& self, auto& visitor) { visitor("width", self.width); }
};

struct Bump final : UnaryOpOf<Bump, BumpOptions> {
  using UnaryOpOf::UnaryOpOf;
  std::string_view name() const override { return "my_bump"; }
  auto value(auto x) const { return x / (1 + square_of(x)); }
  Node slope(const Node& x) const {
    const Node s = square(x / options().width);
    return (1 - s) / square(1 + s);
  }

 private:
  auto square_of(auto x) const { return x * x / (options().width * options().width); }
};

Node bump(Operand x, BumpOptions options = {}) { return apply(std::make_shared<Bump>(options), {x}); }

OpCase case_of(const std::string& op, Node (*build)(Operand x), double (*expected)(double x)) {
  return {op,
          op,
          [=](Graph&, std::span<const Node> in) { return std::vector{build(in[0])}; },
          {{{3, 5}, between(0.25, 2)}},
          reference::elementwise(expected)};
}

}  // namespace

// Cases are checked one by one, not registered, because the tests over all cases know only the ops of ops.def.
TEST_CASE("an elementwise op of one's own: values, gradients, second derivatives") {
  const auto check_case = [](const OpCase& op_case) {
    const CaseReport report = check(op_case, test_backend(), oracle());
    CHECK_MESSAGE(report.passed(), report.failures);
  };
  check_case(case_of("my_softsign", softsign, [](double x) { return x / (1 + std::abs(x)); }));
  check_case(case_of(
      "my_bump", [](Operand x) { return bump(x, {.width = 2}); },
      [](double x) { return x / (1 + x * x / 4); }));
}

TEST_CASE("such an op refuses integers, and two inputs, with the caller's line") {
  Graph graph;
  const Node x = graph.input("x", {DType::int64, {2}});
  const std::string error = user_error([&] { softsign(x); });
  CHECK(contains(error, "unary_op_of_test.cpp"));
  CHECK(contains(error, "my_softsign(int64[2]): takes floating values; use cast()"));
  const Node y = graph.input("y", {DType::float32, {2}});
  CHECK(contains(user_error([&] { apply(std::make_shared<Softsign>(), {y, y}); }), "takes one input"));
}

}  // namespace plexaura::testing::unary_op_of_test
