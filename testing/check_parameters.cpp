#include "testing/check_parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "testing/differences.h"
#include "testing/loss_function.h"
#include "testing/wrong_ops.h"

namespace plexaura {

namespace {

using namespace testing;

constexpr double infinity = std::numeric_limits<double>::infinity();
// The steps of differences, which are tried until one agrees.
constexpr std::array steps{1e-4, 1e-5, 1e-6, 1e-7, 1e-8};
// A finer step counts only if rounding explains at most this part of the derivative.
constexpr double most_excused = 1e-3;
constexpr double tiny = std::numeric_limits<double>::min();
// Sums of the same terms in different orders may differ by this fraction of the sum of their absolute values.
constexpr double roundings_of_sums = 64 * std::numeric_limits<double>::epsilon();

// A scalar function of the graph's inputs, and its gradients with respect to the parameters.
class ScalarFunction {
 public:
  ScalarFunction(LossFunction& function, const Node& value, std::vector<Node> gradients, Backend& backend,
                 const StepBlock& block)
      : function_(function),
        forward_(function.graph, {value}, backend),
        differences_(forward_, function.inputs.values, block) {
    std::vector<Node> wanted;
    for (const Node& gradient : gradients)
      if (!gradient.is_empty()) wanted.push_back(gradient);
    std::vector<Tensor> found;
    if (!wanted.empty()) found = Runner(function.graph, wanted, backend)(function.inputs.values, block);
    auto next = found.begin();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const auto elements =
          static_cast<std::size_t>(function.inputs.values[function.parameters[i]].elements());
      gradients_.push_back(gradients[i].is_empty() ? std::vector<double>(elements) : (next++)->to_doubles());
    }
  }

  // Returns the relative difference of the derivatives of a parameter along a random direction.
  double error_of(std::size_t parameter, Random& random, double tolerance) {
    return error_along(parameter, direction(parameter, random), tolerance);
  }

 private:
  // Three of four elements follow the sign of their gradient, so that the derivative is large and rounding hides little
  // of it. The others have random signs, and so do elements whose gradient is zero, which may be a mistake.
  Direction direction(std::size_t parameter, Random& random) const {
    Direction moves;
    for (std::size_t element = 0; element < gradients_[parameter].size(); ++element) {
      const double amount = random.between(0.5, 1) * (random.below(2) == 0 ? 1 : -1);
      const double gradient = gradients_[parameter][element];
      const bool follows = gradient != 0 && random.below(4) > 0;
      moves.push_back(
          {function_.parameters[parameter], element, follows ? std::copysign(amount, gradient) : amount});
    }
    return moves;
  }

  double error_along(std::size_t parameter, const Direction& moves, double tolerance) {
    double analytic = 0;
    double size = 0;
    double squares = 0;
    for (const Move& move : moves) {
      const double term = gradients_[parameter][move.element] * move.amount;
      analytic += term;
      size += std::abs(term);
      squares += term * term;
    }
    if (!std::isfinite(analytic)) return infinity;
    double best = infinity;
    for (const double step : steps) {
      const double numeric = differences_.along(moves, step).central[0];
      const double excused = differences_.rounding({1}, step) + roundings_of_sums * size;
      const double scale = std::max({std::abs(analytic), std::abs(numeric), std::sqrt(squares)});
      if (step != steps.front() && excused > most_excused * scale) break;
      const double distance = std::abs(analytic - numeric);
      if (!std::isfinite(distance)) continue;
      const bool agrees = distance <= std::max(excused, tolerance * scale);
      best = std::min(best, agrees ? std::min(distance / std::max(scale, tiny), tolerance)
                                   : (distance - excused) / scale);
      if (best <= tolerance) break;
    }
    return best;
  }

  LossFunction& function_;
  Runner forward_;
  Differences differences_;
  std::vector<std::vector<double>> gradients_;  // gradient of each parameter
};

// Returns the sum of all elements of the gradients, each times a random number of its own.
Node weighted_sum(LossFunction& function, const std::vector<Node>& gradients, Random& random) {
  Node all;
  for (const Node& gradient : gradients) {
    if (gradient.is_empty()) continue;
    const Node weights =
        function.inputs.add(function.graph, fmt::format("weights {}", function.inputs.nodes.size()),
                            random.tensor(gradient.type(), -1, 1));
    const Node part = sum(gradient * weights);
    all = all.is_empty() ? part : all + part;
  }
  return all;
}

// Returns sentences about the ops whose own gradient is wrong.
std::vector<std::string> places_of(LossFunction& function, const ParameterCheckOptions& options, bool second,
                                   Backend& backend) {
  const GradientOptions of_ops{.step = 1e-5,
                               .tolerance = options.tolerance,
                               .second_tolerance = options.second_tolerance,
                               .second_order = second,
                               .element_limit = 2,
                               .jacobian_limit = 0,
                               .draws = 1,
                               .seed = options.seed,
                               .block = options.block};
  try {
    const std::vector<Node> from = function.parameter_nodes();
    return wrong_ops(function.graph, nodes_between(from, std::array{function.loss}), function.inputs.values,
                     options.block, backend, [&](const BuildFunction& of_op, const std::vector<Tensor>& met) {
                       return check_gradients(of_op, met, backend, of_ops);
                     });
  } catch (const std::exception& error) {
    return {fmt::format("the op that is wrong was not found: {}", error.what())};
  }
}

// Compares the second derivatives. Returns true if all agree.
bool check_second(LossFunction& function, const std::vector<Node>& gradients, Random& random,
                  Backend& backend, const ParameterCheckOptions& options, ParameterReport& report) {
  const Node all = weighted_sum(function, gradients, random);
  if (all.is_empty()) return true;
  ScalarFunction second(function, all, gradients_or_empty(all, function.parameter_nodes()), backend,
                        options.block);
  for (std::size_t i = 0; i < report.parameters.size(); ++i)
    report.parameters[i].second = second.error_of(i, random, options.second_tolerance);
  return std::ranges::all_of(report.parameters, [&](const ParameterGradient& parameter) {
    return parameter.second <= options.second_tolerance;
  });
}

bool names_wrong_op(const std::vector<std::string>& places) {
  return std::ranges::any_of(
      places, [](const std::string& place) { return place.find("is wrong by itself") != std::string::npos; });
}

}  // namespace

ParameterReport check_parameters(const Node& loss, const std::vector<Feed>& values,
                                 const std::vector<std::string>& parameters, Backend& backend,
                                 const ParameterCheckOptions& options) {
  LossFunction function(loss, values, parameters, "check_parameters");
  Random random(options.seed);
  const std::vector<Node> gradients = gradients_or_empty(function.loss, function.parameter_nodes());
  ParameterReport report;
  ScalarFunction first(function, function.loss, gradients, backend, options.block);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Shape& shape = function.inputs.nodes[function.parameters[i]].shape();
    const double error = first.error_of(i, random, options.tolerance);
    report.parameters.push_back({.name = parameters[i], .shape = shape, .first = error});
    report.passed = report.passed && error <= options.tolerance;
  }
  if (!report.passed) {
    report.places = places_of(function, options, false, backend);
    report.why_no_second = "the first are wrong";
    return report;
  }
  if (!options.second_order) {
    report.why_no_second = "only the first were asked for";
    return report;
  }
  try {
    if (check_second(function, gradients, random, backend, options, report)) return report;
  } catch (const UserError& error) {
    report.why_no_second = error.what();
    return report;
  }
  report.places = places_of(function, options, true, backend);
  report.passed = !names_wrong_op(report.places);
  if (report.passed)
    report.why_no_second =
        "the gradient jumps near these values, as that of relu does at 0, and no op is wrong by itself";
  return report;
}

}  // namespace plexaura
