#include "core/testing/op_case.h"

#include <doctest/doctest.h>

#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing {

namespace {

OpCase negated(Expected expected) {
  return {"an op", "neg", [](Graph&, auto x) { return std::vector{-x[0]}; }, {{{3}}}, std::move(expected)};
}

}  // namespace

TEST_CASE("a case says what a backend got wrong, and where") {
  const CaseReport report = check_forward(negated([](auto x) {
                                            Tensor wrong = x[0];
                                            for (double& value : wrong.as<double>()) value = -value;
                                            wrong.as<double>()[1] += 1e-9;
                                            return std::vector{wrong};
                                          }),
                                          DType::float64, oracle());
  CHECK(report.failures.find("an op in float64 on portable: output 0: element 1") != std::string::npos);
}

TEST_CASE("a case must expect something of every output") {
  CHECK(user_error([] { check_forward(negated({}), DType::float64, oracle()); }).find("'an op'") !=
        std::string::npos);
  const CaseReport report =
      check_forward(negated([](auto) { return std::vector<Tensor>{}; }), DType::float64, oracle());
  CHECK(report.failures.find("1 values where 0 were expected") != std::string::npos);
}

TEST_CASE("a case of misuse must be refused, with the words that help") {
  const auto build = [](Graph& graph) { exp(graph.input("x", {DType::int64, {2}})); };
  CHECK(check(WrongCase{"exp of integers", "exp", build, {"cast()"}}).passed());
  CHECK(!check(WrongCase{"exp of integers", "exp", build, {"no such word"}}).passed());
  CHECK(!check(WrongCase{"exp of floats",
                         "exp",
                         [](Graph& graph) {
                           exp(graph.input("x", {DType::float32, {2}}));
                         },
                         {}})
             .passed());
}

}  // namespace plexaura::testing
