#include "testing/op_case.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "testing/traits.h"

namespace plexaura::testing {

namespace {

constexpr std::uint64_t seed_of_inputs = 7;

// Makes the input values of a case in `dtype`. They are first rounded to `like`, so that inputs of different
// dtypes have the same values.
std::vector<Tensor> make_inputs(const OpCase& op_case, DType dtype, DType like) {
  Random random(seed_of_inputs);
  std::vector<Tensor> inputs;
  for (const CaseInput& input : op_case.inputs)
    inputs.push_back(input.dtype ? make({*input.dtype, input.shape}, input.values, random)
                                 : make({like, input.shape}, input.values, random).cast(dtype));
  return inputs;
}

std::vector<Node> add_inputs(Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Node> nodes;
  for (const Tensor& input : inputs)
    nodes.push_back(graph.input(fmt::format("input {}", nodes.size()), input.type()));
  return nodes;
}

std::vector<Tensor> forward(const OpCase& op_case, const std::vector<Tensor>& inputs, Backend& backend) {
  Graph graph;
  const std::vector<Node> outputs = op_case.build(graph, add_inputs(graph, inputs));
  return Runner(graph, outputs, backend)(inputs, op_case.block);
}

std::vector<Tensor> expected(const OpCase& op_case, const std::vector<Tensor>& inputs) {
  if (!op_case.expected)
    throw UserError(
        fmt::format("the case '{}' does not say what it expects; give it `expected`", op_case.name));
  std::vector<Tensor> wide;
  for (const Tensor& input : inputs) wide.push_back(input.cast(DType::float64));
  return op_case.expected(wide);
}

bool takes_cotangent(const Node& output) {
  const NodeRecord& record = output.graph().record(output.id());
  const auto kept = record.types.size() - static_cast<std::size_t>(record.op->traits().saved_outputs);
  return is_floating(output.dtype()) && output.value().output < kept;
}

// Adds the loss sum(output * cotangent). The cotangents are random and are fed by inputs after those of the
// case, which are appended to `inputs`.
Node add_loss(Graph& graph, const std::vector<Node>& outputs, std::vector<Tensor>& inputs, DType like) {
  Random random(seed_of_inputs + 1);
  Node loss;
  for (const Node& output : outputs) {
    if (!takes_cotangent(output)) continue;
    inputs.push_back(random.tensor({like, output.shape()}, -1, 1).cast(output.dtype()));
    const Node cotangent = graph.input(fmt::format("cotangent {}", inputs.size()), output.type());
    const DType wide = output.dtype() == DType::float64 ? DType::float64 : DType::float32;
    const Node part = cast(sum(output * cotangent), wide);
    loss = loss.is_empty() ? part : loss + part;
  }
  return loss;
}

// Adds the gradients with respect to all floating inputs that the loss depends on. Appends the values of the
// cotangents to `inputs`.
std::vector<Node> add_gradients(Graph& graph, const OpCase& op_case, std::vector<Tensor>& inputs,
                                DType like) {
  const std::vector<Node> nodes = add_inputs(graph, inputs);
  const Node loss = add_loss(graph, op_case.build(graph, nodes), inputs, like);
  std::vector<Node> wrt;
  for (const Node& node : nodes)
    if (is_floating(node.dtype())) wrt.push_back(node);
  std::vector<Node> grads = gradients_or_empty(loss, wrt);
  std::erase_if(grads, [](const Node& grad) { return grad.is_empty(); });
  return grads;
}

std::vector<Tensor> backward(const OpCase& op_case, std::vector<Tensor> inputs, DType like,
                             Backend& backend) {
  Graph graph;
  const std::vector<Node> grads = add_gradients(graph, op_case, inputs, like);
  return Runner(graph, grads, backend)(inputs, op_case.block);
}

double largest(const std::vector<double>& values) {
  double size = 0;
  for (const double value : values)
    if (std::isfinite(value)) size = std::max(size, std::abs(value));
  return size;
}

std::string compare(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what) {
  if (actual.shape() != expected.shape())
    return fmt::format("  {}: shape {} where {} was expected\n", what, to_string(actual.shape()),
                       to_string(expected.shape()));
  const std::vector<double> a = actual.to_doubles();
  const std::vector<double> e = expected.to_doubles();
  const double allowed = tolerance * std::max(largest(e), 1e-30);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]));
    if (same || std::abs(a[i] - e[i]) <= allowed) continue;
    return fmt::format(
        "  {}: element {} is {:.9g} where {:.9g} was expected: off by {:.1e}, allowed {:.1e}\n", what, i,
        a[i], e[i], std::abs(a[i] - e[i]), allowed);
  }
  return {};
}

CaseReport compare_all(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                       double tolerance, const std::string& what) {
  CaseReport report;
  if (actual.size() != expected.size())
    return {1, fmt::format("  {}: {} values where {} were expected\n", what, actual.size(), expected.size())};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    report.failures += compare(actual[i], expected[i], tolerance, fmt::format("{} {}", what, i));
    ++report.comparisons;
  }
  return report;
}

std::string label(const OpCase& op_case, DType dtype, const Backend& backend, const char* what) {
  return fmt::format("{} in {} on {}: {}", op_case.name, name_of(dtype), backend.info().name, what);
}

}  // namespace

double Tolerances::of(DType dtype) const {
  switch (dtype) {
    case DType::float32:
      return float32;
    case DType::bfloat16:
      return bfloat16;
    case DType::float16:
      return float16;
    default:
      return float64;
  }
}

void CaseReport::merge(const CaseReport& other) {
  comparisons += other.comparisons;
  failures += other.failures;
}

CaseReport check_forward(const OpCase& op_case, DType dtype, Backend& backend) {
  const std::vector<Tensor> inputs = make_inputs(op_case, dtype, dtype);
  return compare_all(forward(op_case, inputs, backend), expected(op_case, inputs),
                     op_case.tolerances.of(dtype), label(op_case, dtype, backend, "output"));
}

CaseReport check_backward(const OpCase& op_case, DType dtype, Backend& backend, Backend& oracle) {
  const std::vector<Tensor> expected =
      backward(op_case, make_inputs(op_case, DType::float64, dtype), dtype, oracle);
  const std::vector<Tensor> actual = backward(op_case, make_inputs(op_case, dtype, dtype), dtype, backend);
  return compare_all(actual, expected, op_case.gradient_slack * op_case.tolerances.of(dtype),
                     label(op_case, dtype, backend, "gradient"));
}

CaseReport check_padding(const OpCase& op_case, DType dtype, Backend& backend) {
  Graph graph;
  std::vector<Tensor> inputs = make_inputs(op_case, dtype, dtype);
  const std::vector<Node> wanted = op_case.differentiable ? add_gradients(graph, op_case, inputs, dtype)
                                                          : op_case.build(graph, add_inputs(graph, inputs));
  Runner runner(graph, wanted, backend, {.keep_all = true});
  runner(inputs, op_case.block);
  const PaddingReport looked = runner.padding();
  if (looked.failures.empty()) return {looked.values, {}};
  return {looked.values, label(op_case, dtype, backend, "padding") + "\n" + looked.failures};
}

GradientReport check_gradients(const OpCase& op_case, Backend& oracle) {
  GradientOptions options;
  options.second_order = op_case.second_order;
  options.block = op_case.block;
  return plexaura::check_gradients(op_case.build, make_inputs(op_case, DType::float64, DType::float64),
                                   oracle, options);
}

std::vector<Node> add_inputs(Graph& graph, const OpCase& op_case, DType dtype) {
  std::vector<Node> nodes;
  for (const CaseInput& input : op_case.inputs)
    nodes.push_back(
        graph.input(fmt::format("input {}", nodes.size()), {input.dtype.value_or(dtype), input.shape}));
  return nodes;
}

CaseReport check_op(const OpCase& op_case, Backend& oracle) {
  CaseReport report = check_forward(op_case, op_case.dtypes.front(), oracle);
  report.merge(check_traits(op_case, op_case.dtypes.front()));
  if (!op_case.differentiable) return report;
  const GradientReport gradients = check_gradients(op_case, oracle);
  report.comparisons += gradients.compared;
  if (!gradients.passed)
    report.failures += fmt::format("  {} against differences: {}", op_case.name, to_string(gradients));
  return report;
}

CaseReport check_backend(const OpCase& op_case, DType dtype, Backend& backend, Backend& oracle) {
  CaseReport report = check_forward(op_case, dtype, backend);
  if (op_case.differentiable) report.merge(check_backward(op_case, dtype, backend, oracle));
  report.merge(check_padding(op_case, dtype, backend));
  return report;
}

CaseReport check_backend(const OpCase& op_case, Backend& backend, Backend& oracle) {
  CaseReport report;
  for (const DType dtype : op_case.dtypes) report.merge(check_backend(op_case, dtype, backend, oracle));
  return report;
}

CaseReport check(const OpCase& op_case, Backend& backend, Backend& oracle) {
  CaseReport report = check_op(op_case, oracle);
  report.merge(check_backend(op_case, backend, oracle));
  return report;
}

CaseReport check(const WrongCase& wrong) {
  CaseReport report{1, {}};
  Graph graph;
  try {
    wrong.build(graph);
    report.failures = fmt::format("  {}: nothing was refused\n", wrong.name);
  } catch (const UserError& error) {
    const std::string text = error.what();
    std::vector<std::string> words = wrong.words;
    words.push_back(wrong.op + "(");
    for (const std::string& word : words)
      if (text.find(word) == std::string::npos)
        report.failures += fmt::format("  {}: '{}' is not said in: {}\n", wrong.name, word, text);
  }
  return report;
}

}  // namespace plexaura::testing
