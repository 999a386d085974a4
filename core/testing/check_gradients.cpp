#include "core/testing/check_gradients.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/autodiff/gradients.h"
#include "core/error.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/testing/run.h"
#include "core/testing/values.h"

namespace plexaura {

namespace {

using testing::Random;
using testing::Runner;

bool is_saved(const Node& node) {
  const NodeRecord& record = node.graph().record(node.id());
  return node.value().output + static_cast<std::size_t>(record.op->traits().saved_outputs) >=
         record.types.size();
}

std::string index_text(const Shape& shape, std::int64_t element) {
  std::vector<std::int64_t> index;
  for (const std::int64_t stride : shape.strides()) {
    index.push_back(element / stride);
    element %= stride;
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

// <a, b> over several values.
Node inner_product(std::span<const Node> a, std::span<const Node> b) {
  Node total;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Node part = sum(a[i] * b[i]);
    total = total ? total + part : part;
  }
  return total;
}

// The gradient, or an empty Node where the value does not depend on it: the differences must then be zero.
Node gradient_or_nothing(const Node& value, const Node& wrt) {
  try {
    return gradients(value, {wrt})[0];
  } catch (const UserError&) {
    return {};
  }
}

// A scalar function of the graph's inputs together with its gradient.
struct Function {
  Node value;
  std::vector<Node> grads;  // by input; empty for an input that is held fixed, or has no influence
};

// The function under test in a graph of its own. Inputs of the graph: those of the function, a cotangent for
// each output, and a direction for each floating input.
class Subject {
 public:
  Subject(const BuildFunction& build, const std::vector<Tensor>& inputs, Random& random) : values_(inputs) {
    for (const Tensor& input : inputs) {
      if (is_floating(input.dtype()) && input.dtype() != DType::float64)
        throw UserError("check_gradients works in float64; give the floating inputs as float64");
      add_input(fmt::format("input {}", labels_.size()), input.type());
    }
    build_inputs_ = nodes_;
    for (const Node& output : build(graph_, nodes_))
      if (is_floating(output.dtype()) && !is_saved(output)) outputs_.push_back(output);
    if (outputs_.empty()) throw UserError("check_gradients: the function has no floating output");
    std::vector<Node> cotangents;
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      cotangents.push_back(add_random(fmt::format("cotangent {}", i), outputs_[i].type(), random));
    loss_.value = inner_product(outputs_, cotangents);
    add_gradients(loss_, nodes_);
  }

  // Adds the derivative of the gradient along a random direction; false where the gradient is zero.
  bool add_second(Random& random) {
    const std::vector<Node> variables = nodes_;
    std::vector<Node> grads;
    std::vector<Node> directions;
    for (std::size_t i = 0; i < build_inputs_.size(); ++i) {
      if (!loss_.grads[i]) continue;
      grads.push_back(loss_.grads[i]);
      directions.push_back(add_random(fmt::format("direction {}", i), grads.back().type(), random));
    }
    if (grads.empty()) return false;
    slope_.value = inner_product(grads, directions);
    add_gradients(slope_, variables);
    return true;
  }

  const Graph& graph() const { return graph_; }
  const std::vector<Tensor>& values() const { return values_; }
  const std::vector<Node>& outputs() const { return outputs_; }
  const Function& loss() const { return loss_; }
  const Function& slope() const { return slope_; }
  const std::string& label(std::size_t input) const { return labels_[input]; }
  std::size_t build_inputs() const { return build_inputs_.size(); }

 private:
  Node add_input(std::string label, TensorType type) {
    nodes_.push_back(graph_.input(label, std::move(type)));
    labels_.push_back(std::move(label));
    return nodes_.back();
  }

  Node add_random(std::string label, const TensorType& type, Random& random) {
    values_.push_back(random.tensor(type, -1, 1));
    return add_input(std::move(label), type);
  }

  static void add_gradients(Function& function, const std::vector<Node>& variables) {
    for (const Node& variable : variables)
      function.grads.push_back(is_floating(variable.dtype()) ? gradient_or_nothing(function.value, variable)
                                                             : Node());
  }

  Graph graph_;
  std::vector<Tensor> values_;
  std::vector<std::string> labels_;
  std::vector<Node> nodes_;
  std::vector<Node> build_inputs_;
  std::vector<Node> outputs_;
  Function loss_;
  Function slope_;
};

// Derivatives by central differences of fourth order.
class Differences {
 public:
  Differences(Runner& runner, const std::vector<Tensor>& at, const GradientOptions& options)
      : runner_(runner), at_(at), options_(options) {}

  // Of all outputs of the program, one behind the other, as the chosen element of an input moves.
  std::vector<double> by_element(std::size_t input, std::int64_t element) {
    return derive([&](std::vector<Tensor>& moved, double distance) {
      moved[input].as<double>()[static_cast<std::size_t>(element)] += distance;
    });
  }

  // As the inputs move along directions; those of integers stay where they are.
  std::vector<double> along(const std::vector<Tensor>& directions) {
    return derive([&](std::vector<Tensor>& moved, double distance) {
      for (std::size_t i = 0; i < directions.size(); ++i)
        if (is_floating(moved[i].dtype()))
          for (std::size_t j = 0; j < moved[i].as<double>().size(); ++j)
            moved[i].as<double>()[j] += distance * directions[i].as<double>()[j];
    });
  }

 private:
  template <class Move>
  std::vector<double> derive(const Move& move) {
    const double h = options_.step;
    std::vector<double> derivative;
    for (const auto& [steps, weight] : {std::pair{1.0, 8.0}, {-1.0, -8.0}, {2.0, -1.0}, {-2.0, 1.0}}) {
      std::vector<Tensor> moved = at_;
      move(moved, steps * h);
      std::size_t i = 0;
      for (const Tensor& result : runner_(moved, options_.block))
        for (const double value : result.to_doubles()) {
          if (i == derivative.size()) derivative.push_back(0);
          derivative[i++] += weight * value / (12 * h);
        }
    }
    return derivative;
  }

  Runner& runner_;
  const std::vector<Tensor>& at_;
  const GradientOptions& options_;
};

class Check {
 public:
  Check(const BuildFunction& build, const std::vector<Tensor>& inputs, Backend& backend,
        const GradientOptions& options)
      : backend_(backend), options_(options), random_(options.seed), subject_(build, inputs, random_) {}

  GradientReport run() {
    compare_function(subject_.loss(), subject_.build_inputs(), "gradient", "direction");
    compare_jacobian();
    second_ = true;
    if (options_.second_order && subject_.add_second(random_))
      compare_function(subject_.slope(), subject_.slope().grads.size(), "second", "second direction");
    return std::move(report_);
  }

 private:
  // The gradients of a scalar by the first `variables` inputs of the graph: each element, and all together
  // along a direction.
  void compare_function(const Function& function, std::size_t variables, const std::string& by_element,
                        const std::string& along) {
    const std::vector<std::vector<double>> grads = evaluate(function, variables);
    Runner value(subject_.graph(), {function.value}, backend_);
    Differences differences(value, subject_.values(), options_);
    std::vector<Tensor> directions;
    double analytic = 0;
    double scale = 0;
    for (std::size_t i = 0; i < variables; ++i) {
      directions.push_back(random_.tensor(subject_.values()[i].type(), -1, 1));
      if (!is_floating(directions[i].dtype())) continue;
      for (std::size_t j = 0; j < grads[i].size(); ++j) {
        analytic += grads[i][j] * directions[i].as<double>()[j];
        scale = std::max(scale, std::abs(grads[i][j]));
      }
      compare_elements(differences, i, grads[i], by_element);
    }
    record({along, "all inputs", "", analytic, differences.along(directions)[0]}, scale);
  }

  std::vector<std::vector<double>> evaluate(const Function& function, std::size_t variables) {
    std::vector<Node> wanted;
    for (std::size_t i = 0; i < variables; ++i)
      if (function.grads[i]) wanted.push_back(function.grads[i]);
    std::vector<Tensor> results;
    if (!wanted.empty())
      results = Runner(subject_.graph(), wanted, backend_)(subject_.values(), options_.block);
    std::vector<std::vector<double>> grads;
    std::size_t next = 0;
    for (std::size_t i = 0; i < variables; ++i)
      grads.push_back(
          function.grads[i]
              ? results[next++].to_doubles()
              : std::vector<double>(static_cast<std::size_t>(subject_.values()[i].elements()), 0.0));
    return grads;
  }

  void compare_elements(Differences& differences, std::size_t input, const std::vector<double>& grad,
                        const std::string& check) {
    double scale = 0;
    for (const double value : grad) scale = std::max(scale, std::abs(value));
    const auto count = static_cast<std::int64_t>(grad.size());
    const bool all = count <= options_.element_limit;
    for (std::int64_t i = 0; i < std::min(count, options_.element_limit); ++i) {
      const std::int64_t element = all ? i : random_.below(count);
      const double numeric = differences.by_element(input, element)[0];
      record({check, subject_.label(input), index_text(subject_.values()[input].shape(), element),
              grad[static_cast<std::size_t>(element)], numeric},
             scale);
    }
  }

  // Each output element by each input element, with a cotangent that is 1 at one element and 0 elsewhere.
  void compare_jacobian() {
    std::int64_t rows = 0;
    for (const Node& output : subject_.outputs()) rows += output.shape().elements();
    std::int64_t columns = 0;
    for (std::size_t i = 0; i < subject_.build_inputs(); ++i)
      if (subject_.loss().grads[i]) columns += subject_.values()[i].elements();
    if (rows * columns == 0 || rows * columns > options_.jacobian_limit) return;
    const std::vector<std::vector<double>> jacobian = analytic_rows();
    Runner forward(subject_.graph(), subject_.outputs(), backend_);
    Differences differences(forward, subject_.values(), options_);
    double scale = 0;
    for (const auto& row : jacobian)
      for (const double value : row) scale = std::max(scale, std::abs(value));
    std::size_t column = 0;
    for (std::size_t i = 0; i < subject_.build_inputs(); ++i) {
      if (!subject_.loss().grads[i]) continue;
      for (std::int64_t j = 0; j < subject_.values()[i].elements(); ++j, ++column) {
        const std::vector<double> numeric = differences.by_element(i, j);
        for (std::size_t row = 0; row < jacobian.size(); ++row)
          record({"jacobian", subject_.label(i),
                  index_text(subject_.values()[i].shape(), j) + fmt::format(" of output element {}", row),
                  jacobian[row][column], numeric[row]},
                 scale);
      }
    }
  }

  std::vector<std::vector<double>> analytic_rows() {
    std::vector<Node> wanted;
    for (std::size_t i = 0; i < subject_.build_inputs(); ++i)
      if (subject_.loss().grads[i]) wanted.push_back(subject_.loss().grads[i]);
    Runner runner(subject_.graph(), wanted, backend_);
    std::vector<std::vector<double>> rows;
    for (std::size_t output = 0; output < subject_.outputs().size(); ++output)
      for (std::int64_t element = 0; element < subject_.outputs()[output].shape().elements(); ++element) {
        std::vector<Tensor> values = subject_.values();
        for (std::size_t i = 0; i < subject_.outputs().size(); ++i)
          values[subject_.build_inputs() + i] = Tensor(subject_.outputs()[i].type());
        values[subject_.build_inputs() + output].as<double>()[static_cast<std::size_t>(element)] = 1;
        rows.emplace_back();
        for (const Tensor& result : runner(values, options_.block)) {
          const std::vector<double> part = result.to_doubles();
          rows.back().insert(rows.back().end(), part.begin(), part.end());
        }
      }
    return rows;
  }

  void record(GradientEntry entry, double scale) {
    const double size =
        std::max({std::abs(entry.analytic), std::abs(entry.numeric), 1e-3 * std::max(scale, 0.1)});
    entry.error = std::abs(entry.analytic - entry.numeric) / size;
    entry.limit = second_ ? options_.second_tolerance : options_.tolerance;
    double& worst = second_ ? report_.worst_second : report_.worst;
    worst = std::max(worst, entry.error);
    ++report_.compared;
    if (entry.error <= entry.limit) return;
    report_.passed = false;
    if (report_.failures.size() < 20) report_.failures.push_back(std::move(entry));
  }

  Backend& backend_;
  const GradientOptions& options_;
  Random random_;
  Subject subject_;
  bool second_ = false;
  GradientReport report_;
};

}  // namespace

std::string to_string(const GradientReport& report) {
  std::string text =
      fmt::format("{} derivatives compared; worst relative error {:.1e}, of second derivatives {:.1e}\n",
                  report.compared, report.worst, report.worst_second);
  for (const GradientEntry& entry : report.failures)
    text += fmt::format(
        "  {} by {} {}: analytic {:.9g}, numeric {:.9g}, relative error {:.1e} (limit {:.0e})\n", entry.check,
        entry.input, entry.index, entry.analytic, entry.numeric, entry.error, entry.limit);
  return text;
}

GradientReport check_gradients(const BuildFunction& build, const std::vector<Tensor>& inputs,
                               Backend& backend, const GradientOptions& options) {
  return Check(build, inputs, backend, options).run();
}

}  // namespace plexaura
