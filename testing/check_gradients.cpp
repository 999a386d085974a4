#include "testing/check_gradients.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "testing/gradient_level.h"
#include "testing/wrong_ops.h"

namespace plexaura {

namespace {

using namespace testing;

bool is_saved(const Node& node) {
  const NodeRecord& record = node.graph().record(node.id());
  return node.value().output + static_cast<std::size_t>(record.op->traits().saved_outputs) >=
         record.types.size();
}

// The function under test, built in a graph of its own.
struct CheckedFunction {
  Graph graph;
  GraphInputs inputs;
  std::vector<Node> outputs;  // the outputs whose gradients are checked
};

// Two inputs that share one node. The graph gets no input for the second.
struct Pair {
  std::size_t first;
  std::size_t second;
};

void build_function(CheckedFunction& function, const BuildFunction& build, const std::vector<Tensor>& values,
                    std::optional<Pair> same = {}) {
  std::vector<Node> given;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_floating(values[i].dtype()) && values[i].dtype() != DType::float64)
      throw UserError("check_gradients works in float64; give the floating inputs as float64");
    const bool is_second = same && same->second == i;
    given.push_back(is_second ? given[same->first]
                              : function.inputs.add(function.graph, fmt::format("input {}", i), values[i]));
  }
  for (const Node& output : build(function.graph, given))
    if (is_floating(output.dtype()) && !is_saved(output)) function.outputs.push_back(output);
  if (function.outputs.empty()) throw UserError("check_gradients: the function has no floating output");
}

void check_levels(CheckedFunction& function, Backend& backend, const GradientOptions& options,
                  GradientReport& report) {
  Random random(options.seed);
  const std::size_t given = function.inputs.nodes.size();
  const std::vector<Node> all =
      check_level(function.graph, function.inputs, function.outputs, {}, random, backend, options, report);
  std::vector<Node> grads;
  std::vector<std::size_t> differentiated;
  for (std::size_t input = 0; input < given; ++input) {
    if (all[input].is_empty()) continue;
    grads.push_back(all[input]);
    differentiated.push_back(input);
  }
  if (!options.second_order || grads.empty()) return;
  if (report.passed)
    check_level(function.graph, function.inputs, grads, differentiated, random, backend, options, report);
  else
    report.not_checked.emplace_back("second derivatives, because the first are wrong");
}

void add_exception(GradientReport& report, const std::exception& error) {
  report.passed = false;
  report.failures.push_back(
      {"an exception", "", "", 0, 0, std::numeric_limits<double>::infinity(), 0, error.what()});
}

// Returns true if no failure can be caused by a kink. Returns false if a failure may be caused by a kink or a
// missing value. Such a failure does not count if both inputs of a Pair are equal, because the caller of
// check_gradients() did not choose this point.
bool is_smooth(const GradientReport& report) {
  return std::ranges::all_of(report.failures, [](const GradientEntry& entry) {
    return entry.input.empty() ||
           (entry.note.empty() && std::isfinite(entry.analytic) && std::isfinite(entry.numeric));
  });
}

void check_as_one_node(const BuildFunction& build, const std::vector<Tensor>& inputs, Pair same,
                       Backend& backend, const GradientOptions& options, GradientReport& report) {
  GradientOptions once = options;
  once.second_order = false;
  once.draws = 1;
  once.jacobian_limit = 0;
  GradientReport found;
  try {
    CheckedFunction function;
    build_function(function, build, inputs, same);
    check_levels(function, backend, once, found);
  } catch (const std::exception& error) {
    add_exception(found, error);
  }
  const std::string what = fmt::format("input {} as the same node as input {}", same.second, same.first);
  if (!is_smooth(found)) {
    report.not_checked.push_back(what + ", where the function has a kink or no value");
    return;
  }
  report.compared += found.compared;
  report.worst = std::max(report.worst, found.worst);
  report.passed = report.passed && found.passed;
  for (GradientEntry& entry : found.failures) {
    entry.check += fmt::format(" with {}", what);
    report.failures.push_back(std::move(entry));
  }
}

void check_same_nodes(const BuildFunction& build, const std::vector<Tensor>& inputs, Backend& backend,
                      const GradientOptions& options, GradientReport& report) {
  const std::size_t most = std::min(inputs.size(), most_inputs_with_all_subsets);
  for (std::size_t first = 0; first < most; ++first)
    for (std::size_t second = first + 1; second < most; ++second)
      if (is_floating(inputs[first].dtype()) && inputs[first].type() == inputs[second].type())
        check_as_one_node(build, inputs, {first, second}, backend, options, report);
}

std::size_t count_floating(const std::vector<Tensor>& inputs) {
  return static_cast<std::size_t>(
      std::ranges::count_if(inputs, [](const Tensor& input) { return is_floating(input.dtype()); }));
}

// Returns the element of a failure, like "input 0 [1,2]", without the output element that its cotangent
// selects.
std::string element_of(const GradientEntry& entry) {
  return entry.input + ' ' + entry.index.substr(0, entry.index.find(" of "));
}

// Returns one failure for each element. Drops failures of all inputs together, except the first entry: they
// add nothing to failures of single elements.
std::vector<GradientEntry> one_for_each_element(const std::vector<GradientEntry>& failures) {
  std::set<std::string> elements;
  std::vector<GradientEntry> told;
  for (const GradientEntry& entry : failures) {
    const bool tells_more = entry.input != all_inputs || &entry == &failures.front();
    if (tells_more && elements.insert(element_of(entry)).second) told.push_back(entry);
  }
  return told;
}

std::string text_of(const GradientEntry& entry) {
  std::string text = fmt::format("  {}", entry.check);
  if (!entry.input.empty())
    text += fmt::format(" by {} {}: analytic {:.9g}, numeric {:.9g}, relative error {:.1e} (limit {:.0e})",
                        entry.input, entry.index, entry.analytic, entry.numeric, entry.error, entry.limit);
  if (!entry.note.empty()) text += ": " + entry.note;
  return text + "\n";
}

// Returns the number of first or second derivatives that were compared, and how well they agree.
std::string text_of_errors(std::string_view order, std::int64_t compared, double worst) {
  if (compared == 0) return fmt::format("no {} derivatives compared", order);
  if (worst == 0) return fmt::format("{} {} derivatives compared, no error beyond rounding", compared, order);
  return fmt::format("{} {} derivatives compared, worst relative error {:.1e}", compared, order, worst);
}

}  // namespace

std::string to_string(const GradientReport& report) {
  std::string text =
      fmt::format("{}; {}\n", text_of_errors("first", report.compared - report.compared_second, report.worst),
                  text_of_errors("second", report.compared_second, report.worst_second));
  if (report.not_checkable > 0)
    text += fmt::format(
        "  not checkable: {} derivatives, where rounding of the function's values explains up to "
        "{:.0e} of the largest gradient; give the function smaller values\n",
        report.not_checkable, report.excused);
  for (const GradientEntry& entry : one_for_each_element(report.failures)) text += text_of(entry);
  for (const std::string& place : report.places) text += fmt::format("  {}\n", place);
  if (!report.not_checked.empty())
    text += fmt::format("  not checked: {}\n", fmt::join(report.not_checked, "; "));
  return text;
}

namespace {

// Returns true if all failures are of second derivatives, so that the first derivatives are right.
bool is_second(const GradientReport& report) {
  return std::ranges::all_of(report.failures,
                             [](const GradientEntry& entry) { return entry.check.starts_with("second"); });
}

GradientReport check_function(CheckedFunction& function, const BuildFunction& build,
                              const std::vector<Tensor>& inputs, Backend& backend,
                              const GradientOptions& options) {
  GradientReport report;
  report.not_checked = {"inference mode", "other types than float64"};
  if (count_floating(inputs) > most_inputs_with_all_subsets)
    report.not_checked.push_back(
        fmt::format("sets of wanted inputs, of {}, but one alone and all but one", count_floating(inputs)));
  try {
    check_levels(function, backend, options, report);
  } catch (const std::exception& error) {
    add_exception(report, error);
  }
  check_same_nodes(build, inputs, backend, options, report);
  return report;
}

}  // namespace

GradientReport check_gradients(const BuildFunction& build, const std::vector<Tensor>& inputs,
                               Backend& backend, const GradientOptions& options) {
  CheckedFunction function;
  build_function(function, build, inputs);
  if (count_floating(inputs) == 0)
    throw UserError(
        "check_gradients: no input is floating, so that there is nothing to compare; give the inputs to "
        "differentiate as float64");
  const std::vector<NodeId> forward = nodes_between(function.inputs.nodes, function.outputs);
  GradientReport report = check_function(function, build, inputs, backend, options);
  if (report.passed) return report;
  GradientOptions of_ops = options;
  of_ops.second_order = is_second(report);
  try {
    report.places = wrong_ops(function.graph, forward, function.inputs.values, options.block, backend,
                              [&](const BuildFunction& of_op, const std::vector<Tensor>& met) {
                                CheckedFunction op;
                                build_function(op, of_op, met);
                                return check_function(op, of_op, met, backend, of_ops);
                              });
  } catch (const std::exception& error) {
    report.places = {fmt::format("the op that is wrong was not found: {}", error.what())};
  }
  return report;
}

}  // namespace plexaura
