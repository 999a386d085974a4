#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string_view>

#include "tests/support/cases.h"

namespace plexaura::testing::coverage_test {

namespace {

constexpr auto every_op = std::to_array<std::string_view>({
#define PLEXAURA_OP(name) #name,
#include "core/ops/ops.def"
});

bool has_case(std::string_view op) {
  return std::ranges::any_of(all_cases(), [&](const OpCase& op_case) { return op_case.op == op; });
}

bool has_wrong_case(std::string_view op) {
  return std::ranges::any_of(all_wrong_cases(), [&](const WrongCase& wrong) { return wrong.op == op; });
}

}  // namespace

TEST_CASE("every op of ops.def has a case that uses it") {
  for (const std::string_view op : every_op)
    CHECK_MESSAGE(has_case(op), fmt::format("{} has no OpCase in tests/ops", op));
  for (const OpCase& op_case : all_cases())
    CHECK_MESSAGE((op_in(op_case, DType::float64) || op_in(op_case, DType::float32)),
                  fmt::format("'{}' does not use {}", op_case.name, op_case.op));
  MESSAGE(fmt::format("{} ops, {} cases, {} wrong uses", every_op.size(), all_cases().size(),
                      all_wrong_cases().size()));
}

TEST_CASE("every case says what it expects") {
  for (const OpCase& op_case : all_cases())
    CHECK_MESSAGE(static_cast<bool>(op_case.expected), fmt::format("'{}' has no `expected`", op_case.name));
}

TEST_CASE("every op of ops.def that can be used wrongly has a case that does") {
  // They accept any single value.
  constexpr auto cannot_be_wrong = std::to_array<std::string_view>({"stop_gradient", "cast"});
  for (const std::string_view op : every_op)
    if (std::ranges::find(cannot_be_wrong, op) == cannot_be_wrong.end())
      CHECK_MESSAGE(has_wrong_case(op), fmt::format("no test says what {} refuses", op));
}

TEST_CASE("every op of ops.def has a reference kernel") {
  for (const OpCase& op_case : all_cases()) {
    const auto op = op_in(op_case, op_case.dtypes.front());
    if (op != nullptr)
      CHECK_MESSAGE(static_cast<bool>(op->reference()), fmt::format("{} has no compute()", op_case.op));
  }
}

}  // namespace plexaura::testing::coverage_test
