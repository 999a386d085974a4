#include "tests/support/random_graph/properties.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "tests/support/least_arena.h"
#include "tests/support/random_graph/graph_runner.h"
#include "tests/support/random_graph/plan_check.h"

namespace plexaura::testing {

namespace {

constexpr int points = 3;       // at which a difference must appear
constexpr int most_points = 6;  // at which a derivative is compared
constexpr double float64_tolerance = 1e-10;
constexpr double float32_tolerance = 1e-4;
constexpr double derivative_tolerance = 2e-5;
constexpr double rounding_factor = 1000;

// A graph, its gradients, and the derivative along a direction.
struct Differentiated {
  RandomGraph random;
  std::vector<Node> grads;        // by leaf; empty for zero
  std::vector<Tensor> direction;  // by leaf
  Node value;                     // the sum of the outputs' elements, each times a number
  Node slope;                     // its derivative along the direction; empty if it is zero
  Node curvature;  // the derivative of the slope along the direction; empty if it is zero or not wanted

  Differentiated(const Recipe& recipe, DType dtype) : random(recipe, dtype) {}
};

Node total(const std::vector<Node>& values, const std::vector<Node>& weights) {
  Node result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_empty()) continue;
    const Node part = sum(values[i] * weights[i]);
    result = result.is_empty() ? part : result + part;
  }
  return result;
}

std::vector<Node> constants_like(Graph& graph, const std::vector<Node>& nodes, Random& random) {
  std::vector<Node> constants;
  for (const Node& node : nodes) constants.push_back(graph.constant(random.tensor(node.type(), -1, 1)));
  return constants;
}

void differentiate(Differentiated& built, bool second_order) {
  RandomGraph& random = built.random;
  Random numbers(5);
  const std::vector<Node> cotangents = constants_like(random.graph(), random.outputs(), numbers);
  const std::vector<Node> direction = constants_like(random.graph(), random.leaf_nodes(), numbers);
  for (const Node& node : direction)
    built.direction.push_back(*as_leaf(*random.graph().record(node.id()).op)->value());
  built.value = total(random.outputs(), cotangents);
  built.grads = vjp(random.outputs(), cotangents, random.leaf_nodes());
  built.slope = total(built.grads, direction);
  if (second_order && !built.slope.is_empty())
    built.curvature = total(gradients_or_empty(built.slope, random.leaf_nodes()), direction);
}

// Returns the nodes that are compared: outputs, gradients and, if the graph has any, further derivatives.
std::vector<Node> compared(const Differentiated& built) {
  std::vector<Node> nodes = built.random.outputs();
  for (const Node& grad : built.grads)
    if (!grad.is_empty()) nodes.push_back(grad);
  for (const Node& node : {built.slope, built.curvature})
    if (!node.is_empty()) nodes.push_back(node);
  return nodes;
}

std::vector<Tensor> point_of(const RandomGraph& graph, std::uint64_t number) {
  Random random(number);
  std::vector<Tensor> values;
  for (const SketchLeaf& leaf : graph.leaves()) values.push_back(random.tensor(leaf.type, -1.5, 1.5));
  return values;
}

// The point with every element changed in its last digits.
std::vector<Tensor> beside(const std::vector<Tensor>& point) {
  Random random(3);
  std::vector<Tensor> values;
  for (const Tensor& tensor : point) {
    const double digit = tensor.dtype() == DType::float64 ? 0x1p-52 : 0x1p-23;
    Tensor moved = tensor.cast(DType::float64);
    for (double& element : moved.as<double>()) element *= 1 + digit * random.between(-2, 2);
    values.push_back(moved.cast(tensor.dtype()));
  }
  return values;
}

// The largest difference of two tensors. Equal infinities and pairs of NaN do not differ.
double distance(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_doubles();
  const std::vector<double> y = b.to_doubles();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double difference = std::abs(x[i] - y[i]);
    largest = std::max(largest, std::isnan(difference) ? HUGE_VAL : difference);
  }
  return largest;
}

double largest_of(const Tensor& tensor) {
  double largest = 1;
  for (const double value : tensor.to_doubles())
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest;
}

// One way to compute a graph.
struct Variant {
  std::string name;
  GraphRunner runner;
};

// Returns the first result of a variant that differs from the reference at this point.
std::string difference_at(const std::vector<Tensor>& point, GraphRunner& reference, Variant& variant,
                          double tolerance) {
  const std::vector<Tensor> expected = reference(point);
  const std::vector<Tensor> rounded = reference(beside(point));
  const std::vector<Tensor> actual = variant.runner(point);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double allowed =
        tolerance * largest_of(expected[i]) + rounding_factor * distance(expected[i], rounded[i]);
    const double found = distance(actual[i], expected[i]);
    if (found > allowed)
      return fmt::format("{}: result {} ({}) differs by {:.3g}, allowed {:.3g}", variant.name, i,
                         to_string(expected[i].type()), found, allowed);
  }
  return "";
}

std::string difference(const RandomGraph& graph, GraphRunner& reference, Variant& variant, double tolerance) {
  std::string found;
  for (std::uint64_t number = 1; number <= points; ++number) {
    found = difference_at(point_of(graph, number), reference, variant, tolerance);
    if (found.empty()) return "";
  }
  return found;
}

std::string check_plan(const Variant& variant) {
  const std::string fault = overwritten_value(variant.runner.program());
  return fault.empty() ? "" : fmt::format("{}: the plan overwrites a value: {}", variant.name, fault);
}

// Returns a fault of the graph in the smallest arena: a value that differs in a bit from the usual program.
std::string check_limited(Differentiated& built, const std::vector<Node>& outputs, Backend& backend,
                          Variant& variant, GraphReport& report) {
  std::vector<ProgramOutput> readable;
  for (const Node& node : outputs) readable.push_back({.node = node});
  const auto least = least_arena(built.random.graph(), readable, backend);
  if (!least || *least >= variant.runner.program().arena_bytes) return "";
  ++report.limited;
  Variant limited{"in the smallest arena", GraphRunner(built.random.graph(), built.random.leaves(), outputs,
                                                       backend, {.memory_limit = least})};
  if (std::string fault = check_plan(limited); !fault.empty()) return fault;
  const std::vector<Tensor> point = point_of(built.random, 1);
  const std::vector<Tensor> expected = variant.runner(point);
  const std::vector<Tensor> found = limited.runner(point);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!std::equal(found[i].data(), found[i].data() + found[i].bytes(), expected[i].data()))
      return fmt::format("{}: result {} has other bits", limited.name, i);
  return "";
}

std::string check_variants(Differentiated& built, DType dtype, Backend& backend, Backend& oracle,
                           GraphRunner& reference, GraphReport& report) {
  const std::vector<Node> outputs = compared(built);
  const double tolerance = dtype == DType::float64 ? float64_tolerance : float32_tolerance;
  struct Way {
    std::string name;
    Backend& backend;
    bool optimise;
  };
  for (const Way& way : {Way{"compiled", backend, true}, Way{"compiled without passes", backend, false},
                         Way{"compiled for the portable kernels", oracle, true}}) {
    const std::string name = fmt::format("{} in {}", way.name, plexaura::name_of(dtype));
    Variant variant{name, GraphRunner(built.random.graph(), built.random.leaves(), outputs, way.backend,
                                      {.optimise = way.optimise})};
    std::string fault = check_plan(variant);
    if (fault.empty()) fault = difference(built.random, reference, variant, tolerance);
    if (fault.empty() && way.optimise && dtype == DType::float32)
      fault = check_limited(built, outputs, way.backend, variant, report);
    if (!fault.empty()) return fault;
  }
  return "";
}

enum class Verdict : std::uint8_t { right, wrong, unclear };

struct Comparison {
  Verdict verdict = Verdict::unclear;
  double analytic = 0;
  double numeric = 0;
};

std::vector<Tensor> moved(const std::vector<Tensor>& point, const std::vector<Tensor>& direction,
                          double distance) {
  std::vector<Tensor> values = point;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t element = 0; element < values[i].as<double>().size(); ++element)
      values[i].as<double>()[element] += distance * direction[i].as<double>()[element];
  return values;
}

// Compares a derivative with fourth-order central differences of several steps. It is wrong if two of them agree with each
// other and not with it.
template <class Line>
Comparison compare(double analytic, const Line& line) {
  Comparison comparison{Verdict::unclear, analytic, 0};
  const double floor = 1e-3 * std::max(1.0, std::abs(line(0)));
  const auto agree = [&](double a, double b) {
    return std::abs(a - b) <= derivative_tolerance * std::max({floor, std::abs(a), std::abs(b)});
  };
  double last = NAN;
  for (const double step : {1e-3, 1e-4, 1e-2, 1e-5}) {
    const double slope = (8 * (line(step) - line(-step)) - (line(2 * step) - line(-2 * step))) / (12 * step);
    if (agree(slope, analytic)) return {Verdict::right, analytic, slope};
    if (agree(slope, last)) comparison = {Verdict::wrong, analytic, slope};
    last = slope;
  }
  return comparison;
}

// Compares result `derivative` of the runner, which is a derivative along the direction, with result `function`.
std::string check_derivative(const Differentiated& built, GraphRunner& runner, std::size_t function,
                             std::optional<std::size_t> derivative, GraphReport& report) {
  int wrong = 0;
  Comparison last;
  for (std::uint64_t number = 1; number <= most_points && wrong < points; ++number) {
    const std::vector<Tensor> point = point_of(built.random, number);
    const auto result = [&](double distance, std::size_t index) {
      return runner(moved(point, built.direction, distance))[index].as<double>()[0];
    };
    const Comparison found = compare(derivative ? result(0, *derivative) : 0,
                                     [&](double distance) { return result(distance, function); });
    if (found.verdict == Verdict::right) {
      ++report.derivatives;
      return "";
    }
    if (found.verdict == Verdict::unclear) continue;
    ++wrong;
    last = found;
  }
  if (wrong == points)
    return fmt::format("the {} derivative along a direction is {:.9g}, by differences {:.9g}",
                       function == 0 ? "first" : "second", last.analytic, last.numeric);
  ++report.not_comparable;
  return "";
}

std::string check_derivatives(Differentiated& built, Backend& oracle, GraphReport& report) {
  std::vector<Node> nodes{built.value};
  if (!built.slope.is_empty()) nodes.push_back(built.slope);
  if (!built.curvature.is_empty()) nodes.push_back(built.curvature);
  GraphRunner runner(built.random.graph(), built.random.leaves(), nodes, oracle, {});
  const auto index = [](const Node& node, std::size_t at) {
    return node.is_empty() ? std::nullopt : std::optional(at);
  };
  std::string fault = check_derivative(built, runner, 0, index(built.slope, 1), report);
  if (fault.empty() && !built.curvature.is_empty())
    fault = check_derivative(built, runner, 1, index(built.curvature, 2), report);
  return fault;
}

void check_in(const Recipe& recipe, DType dtype, bool second_order, Backend& backend, Backend& oracle,
              GraphReport& report) {
  Differentiated built(recipe, dtype);
  if (built.random.outputs().empty()) return;
  differentiate(built, second_order);
  for (NodeId id = 0; id < built.random.graph().size(); ++id)
    report.ops.emplace(built.random.graph().record(id).op->name());
  GraphRunner reference(built.random.graph(), built.random.leaves(), compared(built), oracle,
                        {.keep_all = true});
  report.failure = check_variants(built, dtype, backend, oracle, reference, report);
  if (report.failure.empty() && dtype == DType::float64)
    report.failure = check_derivatives(built, oracle, report);
}

}  // namespace

GraphReport check_random_graph(const Recipe& recipe, bool second_order, Backend& backend, Backend& oracle) {
  GraphReport report;
  try {
    check_in(recipe, DType::float64, second_order, backend, oracle, report);
    if (report.failure.empty()) check_in(recipe, DType::float32, false, backend, oracle, report);
  } catch (const std::exception& error) {
    report.failure = fmt::format("it throws: {}", error.what());
  }
  return report;
}

}  // namespace plexaura::testing
