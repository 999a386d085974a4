// Counts what the cases of tests/ops cover: each option of each op with two values or more, each dtype that
// the op's shape rule accepts, axes of extent 1 and 0, and gradients of both orders.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/op_coverage.h"

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

const CoverageOfOps& coverage_of_ops() {
  static const CoverageOfOps all = [] {
    CoverageOfOps coverage;
    for (const OpCase& op_case : all_cases()) add_case(coverage, op_case);
    return coverage;
  }();
  return all;
}

const OpCoverage& coverage_of(std::string_view op) { return coverage_of_ops().find(op)->second; }

// True if only one value can be tested: the op refuses the others, or they belong to another op that shares the option.
bool has_one_value(std::string_view op, std::string_view option) {
  const bool is_gradient = op.ends_with("_grad");
  return option == "stream"                                           // the graph gives each op its own
         || option == "label_smoothing"                               // composed of other ops
         || (option == "count_include_pad" && op.starts_with("max"))  // shared with averages
         || (option == "input" && !is_gradient);                      // shared with gradients
}

std::vector<std::string> options_of_one_value(std::string_view op, const OpCoverage& of) {
  std::vector<std::string> names;
  for (const auto& [name, texts] : of.options)
    if (texts.size() < 2 && !has_one_value(op, name)) names.push_back(name);
  return names;
}

std::set<InputDType> unused(std::string_view op) {
  const OpCoverage& of = coverage_of(op);
  std::set<InputDType> dtypes;
  std::ranges::set_difference(of.accepted, of.used, std::inserter(dtypes, dtypes.end()));
  // The builders of these cast 16-bit floats to float32, in which they add up.
  if (op == "fold" || op == "take_along_axis_grad")
    std::erase_if(dtypes,
                  [](const InputDType& of) { return is_floating(of.second) && size_of(of.second) == 2; });
  return dtypes;
}

// Returns values that are whole numbers: those that `values` draws, rounded so that their order stays. A number that is
// not finite becomes 0.
Values as_whole(const Values& values, DType dtype) {
  return [=](std::span<double> numbers, Random& random) {
    values(numbers, random);
    for (double& number : numbers) {
      if (dtype == DType::boolean)
        number = number > 0 ? 1 : 0;
      else
        number = std::isfinite(number) ? std::max(1.0, std::round(4 * number + 40)) : 0;
    }
  };
}

// Wraps around as results of this dtype do.
Expected wrapped(const Expected& expected, DType dtype) {
  return [=](std::span<const Tensor> inputs) {
    std::vector<Tensor> results = expected(inputs);
    for (Tensor& result : results) result = result.cast(DType::int64).cast(dtype).cast(DType::float64);
    return results;
  };
}

// Returns true if every output of the case in this dtype has this dtype.
bool keeps_dtype(const OpCase& op_case, DType dtype) {
  Graph graph;
  const std::vector<Node> outputs = op_case.build(graph, add_inputs(graph, op_case, dtype));
  return std::ranges::all_of(outputs, [&](const Node& output) { return output.dtype() == dtype; });
}

bool uses(const OpCase& op_case, std::string_view op, const InputDType& wanted) {
  CoverageOfOps found;
  try {
    add_case(found, op_case);
  } catch (const UserError&) {
    return false;
  }
  const auto own = found.find(op);
  return own != found.end() && own->second.used.contains(wanted);
}

// Returns the first case of the op that can be computed in a dtype of integers or of bools, in that dtype.
std::optional<OpCase> in_whole_numbers(std::string_view op, const InputDType& wanted) {
  for (OpCase variant : all_cases()) {
    if (variant.op != op || is_floating(wanted.second)) continue;
    variant.name += fmt::format(" of {}", name_of(wanted.second));
    variant.dtypes = {wanted.second};
    variant.differentiable = false;
    for (CaseInput& input : variant.inputs)
      if (!input.dtype) input.values = as_whole(input.values, wanted.second);
    if (!uses(variant, op, wanted)) continue;
    if (keeps_dtype(variant, wanted.second)) variant.expected = wrapped(variant.expected, wanted.second);
    return variant;
  }
  return {};
}

bool has_any_number_of_values(const CaseInput& input) {
  std::vector<double> two(2);
  Random random(0);
  try {
    input.values(two, random);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// Returns true if the case builds nothing but one elementwise op.
bool is_elementwise(const OpCase& op_case) {
  Graph graph;
  std::vector<Node> inputs;
  for (const CaseInput& input : op_case.inputs)
    inputs.push_back(graph.input(fmt::format("{}", inputs.size()),
                                 {input.dtype.value_or(op_case.dtypes.front()), input.shape}));
  const std::size_t leaves = graph.size();
  op_case.build(graph, inputs);
  return graph.size() == leaves + 1 && graph.record(leaves).op->traits().elementwise;
}

// Returns the first case of an elementwise op whose operands can all have this shape, with this shape.
std::optional<OpCase> in_shape(std::string_view op, const Shape& shape) {
  for (OpCase variant : all_cases()) {
    if (variant.op != op || !is_elementwise(variant)) continue;
    variant.name += " of " + to_string(shape);
    for (CaseInput& input : variant.inputs) {
      input.shape = shape;
      if (!has_any_number_of_values(input)) input.values = whole(0, 4);
    }
    return variant;
  }
  return {};
}

bool is_step(std::string_view op) { return op.ends_with("_step"); }

// Ops without gradient: steps, choices of whole numbers, and draws.
bool has_gradient(std::string_view op) {
  constexpr std::string_view without =
      " eq ne lt le gt ge floor_div bitwise_and bitwise_or bitwise_xor left_shift right_shift sign ceil "
      "floor "
      "round trunc normalise_image stop_gradient argmax searchsorted one_hot top_k_correct uniform normal ";
  return !is_step(op) && without.find(fmt::format(" {} ", op)) == std::string_view::npos;
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

TEST_CASE("every option of every op has two values or more in the cases") {
  for (const std::string_view op : every_op)
    CHECK_MESSAGE(options_of_one_value(op, coverage_of(op)).empty(),
                  fmt::format("all cases of {} have the same {}", op,
                              fmt::join(options_of_one_value(op, coverage_of(op)), " and ")));
}

// Dtypes of integers and bools that no case has are tried with the values of a case of floats.
TEST_CASE("every op computes in each dtype that its shape rule accepts") {
  for (const std::string_view op : every_op)
    for (const InputDType& missing : unused(op)) {
      const auto variant = in_whole_numbers(op, missing);
      CHECK_MESSAGE(variant.has_value(), fmt::format("no case of {} has {} as input {}", op,
                                                     name_of(missing.second), missing.first));
      if (!variant) continue;
      CAPTURE(variant->name);
      const CaseReport report = check_forward(*variant, missing.second, test_backend());
      CHECK_MESSAGE(report.passed(), report.failures);
    }
}

// Elementwise ops are tried with the functions of a case of another shape. A step gets a slice of an arena, which is
// never empty.
TEST_CASE("every op computes values of one element along an axis, and empty ones") {
  for (const std::string_view op : every_op)
    for (const std::int64_t extent : {0, 1}) {
      const bool is_covered = extent == 0 ? coverage_of(op).has_none : coverage_of(op).has_one;
      if (is_covered || is_step(op)) continue;
      const auto variant = in_shape(op, {2, extent});
      CHECK_MESSAGE(variant.has_value(), fmt::format("no case of {} has an axis of extent {}", op, extent));
      if (!variant) continue;
      CAPTURE(variant->name);
      for (const DType dtype : variant->dtypes) {
        const CaseReport report = check_forward(*variant, dtype, test_backend());
        CHECK_MESSAGE(report.passed(), report.failures);
      }
    }
}

TEST_CASE("every op has a case with a gradient, and one with a second derivative") {
  for (const std::string_view op : every_op) {
    CAPTURE(op);
    CHECK(coverage_of(op).first_order == has_gradient(op));
    CHECK(coverage_of(op).second_order == has_gradient(op));
  }
}

TEST_CASE("every op refuses to have no inputs, and two more than it takes") {
  std::set<std::string_view> seen;
  for (const OpCase& op_case : all_cases()) {
    Graph graph;
    std::vector<Node> inputs;
    for (const CaseInput& input : op_case.inputs)
      inputs.push_back(graph.input(fmt::format("{}", inputs.size()),
                                   {input.dtype.value_or(op_case.dtypes.front()), input.shape}));
    op_case.build(graph, inputs);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const NodeRecord& record = graph.record(id);
      const std::string_view op = record.op->name();
      if (record.inputs.empty() || op == "concat" || !seen.insert(op).second) continue;
      std::vector<TensorType> types;
      for (const Value input : record.inputs) types.push_back(graph.type(input));
      types.insert(types.end(), 2, types.back());
      CAPTURE(op);
      CHECK_THROWS_AS(record.op->infer({}), RuleError);
      CHECK_THROWS_AS(record.op->infer(types), RuleError);
    }
  }
}

TEST_CASE("the table of what the cases cover is printed with PLEXAURA_COVERAGE") {
  if (std::getenv("PLEXAURA_COVERAGE") == nullptr) return;
  fmt::print(
      "| op | cases | dtypes of inputs | options: values | extent 1 | extent 0 | orders of gradients |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const std::string_view op : every_op) {
    const OpCoverage& of = coverage_of(op);
    std::vector<std::string> options;
    for (const auto& [name, texts] : of.options) options.push_back(fmt::format("{}: {}", name, texts.size()));
    fmt::print("| `{}` | {} | {} of {} | {} | {} | {} | {} |\n", op, of.cases,
               of.accepted.size() - unused(op).size(), of.accepted.size(), fmt::join(options, ", "),
               of.has_one ? "yes" : "variant", of.has_none ? "yes" : "variant",
               int{of.first_order} + int{of.second_order});
  }
}

}  // namespace plexaura::testing::coverage_test
