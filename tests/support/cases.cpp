#include "tests/support/cases.h"

#include <doctest/doctest.h>

#include "tests/support/backend.h"

namespace plexaura::testing {

namespace {

std::vector<OpCase>& known_cases() {
  static std::vector<OpCase> cases;
  return cases;
}

std::vector<WrongCase>& known_wrong_cases() {
  static std::vector<WrongCase> cases;
  return cases;
}

}  // namespace

Cases::Cases(std::vector<OpCase> given) : cases(std::move(given)) {
  known_cases().insert(known_cases().end(), cases.begin(), cases.end());
}

WrongCases::WrongCases(std::vector<WrongCase> given) : cases(std::move(given)) {
  known_wrong_cases().insert(known_wrong_cases().end(), cases.begin(), cases.end());
}

const std::vector<OpCase>& all_cases() { return known_cases(); }
const std::vector<WrongCase>& all_wrong_cases() { return known_wrong_cases(); }

void check_all(const Cases& cases) {
  for (const OpCase& op_case : cases.cases) {
    CAPTURE(op_case.name);
    const CaseReport report = check(op_case, test_backend(), oracle());
    CHECK_MESSAGE(report.passed(), report.failures);
    CHECK(report.comparisons > 0);
  }
}

void check_all(const WrongCases& cases) {
  for (const WrongCase& wrong : cases.cases) {
    const CaseReport report = check(wrong);
    CHECK_MESSAGE(report.passed(), report.failures);
  }
}

Node output_of(const Node& node, std::uint32_t output) { return {node.graph(), {node.id(), output}}; }

}  // namespace plexaura::testing
