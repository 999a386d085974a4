#include "testing/gradient_level.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <numeric>

#include "testing/differences.h"

namespace plexaura::testing {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Sums of the same terms in different orders may differ by this fraction of the sum of their absolute values.
constexpr double roundings_of_sums = 64 * std::numeric_limits<double>::epsilon();
constexpr double tolerance_of_equals = 1e-10;
constexpr std::size_t most_failures = 20;

std::string index_text(const Shape& shape, std::size_t element) {
  auto rest = static_cast<std::int64_t>(element);
  std::vector<std::int64_t> index;
  for (const std::int64_t stride : shape.strides()) {
    index.push_back(rest / stride);
    rest %= stride;
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double largest_of(const std::vector<double>& values) {
  double size = 0;
  for (const double value : values) size = std::max(size, std::abs(value));
  return size;
}

// Returns the part of the difference of two values that exceeds `excused`, as a fraction of the larger value.
double relative_error(double a, double b, double excused) {
  const double difference = std::abs(a - b);
  if (!std::isfinite(difference)) return infinity;
  return difference <= excused ? 0 : (difference - excused) / std::max(std::abs(a), std::abs(b));
}

// One cotangent for each element of the outputs, and the name that reports give it.
struct Cotangents {
  std::string check;  // such as "gradient" or "jacobian"
  std::string where;  // such as " of output element 3"
  std::vector<double> values;
};

// A set of input elements that move together, its names in reports, and the differences along it, which are
// computed once for each step size.
struct Course {
  Direction direction;
  std::string input;  // such as "input 1" or "all inputs"
  std::string index;  // such as "[0,2]" or "63 elements"
  std::map<double, Slopes> slopes = {};
};

// Checks one function of the graph's inputs and its gradients. The function is the one under test or, for
// second derivatives, its gradients with respect to the inputs `differentiated`.
class Level {
 public:
  Level(Graph& graph, GraphInputs& inputs, const std::vector<Node>& outputs,
        std::vector<std::size_t> differentiated, Random& random, Backend& backend,
        const GradientOptions& options, GradientReport& report)
      : differentiated_(std::move(differentiated)),
        random_(random),
        options_(options),
        report_(report),
        program_(graph, inputs, outputs,
                 {is_second() ? "direction" : "cotangent", is_second() ? 1 : most_inputs_with_all_subsets},
                 random, backend),
        inputs_(inputs),
        forward_(graph, outputs, backend),
        differences_(forward_, inputs.values, options.block) {
    for (const Node& output : outputs) sizes_.push_back(static_cast<std::size_t>(output.shape().elements()));
  }

  // Returns the gradients by input, computed all at once. An input without a gradient has an empty node.
  const std::vector<Node>& grads() const { return program_.ways().front().grads; }

  void check() {
    check_ways();
    if (is_second()) check_symmetry();
    std::vector<Course> courses = all_courses();
    for (const Cotangents& cotangents : all_cotangents(courses.size())) {
      const Derivatives grads = derive(cotangents.values)[0];
      scale_ = 0;
      for (const std::vector<double>& grad : grads) scale_ = std::max(scale_, largest_of(grad));
      for (Course& course : courses) check_course(course, grads, cotangents);
    }
  }

 private:
  bool is_second() const { return !differentiated_.empty(); }

  std::vector<Derivatives> derive(const std::vector<double>& cotangents) {
    return program_.derive(inputs_.values, cotangents, options_.block);
  }

  std::string text_of(const Move& move) const {
    return index_text(inputs_.values[move.input].shape(), move.element);
  }

  // Returns one course for each element of each input, or for groups of elements if an input is large, and
  // one for all inputs together.
  std::vector<Course> all_courses() {
    std::vector<Course> courses;
    Direction everything;
    for (std::size_t input = 0; input < program_.variables(); ++input) {
      if (!program_.ways().front().variables[input]) continue;
      for (Direction& direction : directions_of(input)) {
        everything.insert(everything.end(), direction.begin(), direction.end());
        const std::string index =
            direction.size() == 1 ? text_of(direction[0]) : fmt::format("{} elements", direction.size());
        courses.push_back({std::move(direction), inputs_.labels[input], index});
      }
    }
    for (Move& move : everything) move.amount = random_.between(-1, 1);
    if (!everything.empty()) courses.push_back({std::move(everything), all_inputs, ""});
    return courses;
  }

  std::vector<Direction> directions_of(std::size_t input) {
    const auto elements = static_cast<std::size_t>(inputs_.values[input].elements());
    std::vector<Direction> directions(std::min(elements, static_cast<std::size_t>(options_.element_limit)));
    for (std::size_t element = 0; element < elements; ++element) {
      const double amount = random_.between(0.5, 1) * (random_.below(2) == 0 ? 1 : -1);
      directions[element % directions.size()].push_back(
          {input, element, directions.size() == elements ? 1 : amount});
    }
    return directions;
  }

  // Returns random cotangents, cotangents of one output alone, and, if there are few output elements, a unit
  // vector for each.
  std::vector<Cotangents> all_cotangents(std::size_t courses) {
    std::vector<Cotangents> all;
    for (std::int64_t draw = 0; draw < options_.draws; ++draw)
      all.push_back({"gradient", "", program_.random_cotangents(random_)});
    const std::size_t count = all.front().values.size();
    for (std::size_t output = 0; output < sizes_.size() && sizes_.size() > 1; ++output) {
      std::vector<double> alone = program_.random_cotangents(random_);
      for_each_element([&](std::size_t of, std::size_t element) {
        if (of != output) alone[element] = 0;
      });
      all.push_back({"gradient", fmt::format(" of output {}", output), std::move(alone)});
    }
    if (static_cast<std::int64_t>(count * courses) > options_.jacobian_limit) return all;
    for (std::size_t element = 0; element < count; ++element) {
      all.push_back({"jacobian", fmt::format(" of output element {}", element), std::vector<double>(count)});
      all.back().values[element] = 1;
    }
    return all;
  }

  // Calls body(output, element) for each element of the outputs. `element` counts through all outputs.
  template <class Body>
  void for_each_element(const Body& body) const {
    std::size_t element = 0;
    for (std::size_t output = 0; output < sizes_.size(); ++output)
      for (std::size_t i = 0; i < sizes_[output]; ++i) body(output, element++);
  }

  // Records the comparison along one course. If a group of elements is wrong, records the elements that are
  // wrong by themselves instead.
  void check_course(Course& course, const Derivatives& grads, const Cotangents& cotangents) {
    const GradientEntry entry = compare(course, grads, cotangents);
    bool is_named = false;
    const bool is_group = course.direction.size() > 1 && course.input != all_inputs;
    if (entry.error > entry.limit && is_group && report_.failures.size() < most_failures)
      for (const Move& move : course.direction) {
        Course single{{move}, course.input, text_of(move)};
        const GradientEntry of_element = compare(single, grads, cotangents);
        if (of_element.error <= of_element.limit) continue;
        record(of_element);
        is_named = true;
      }
    if (!is_named) record(entry);
  }

  GradientEntry compare(Course& course, const Derivatives& grads, const Cotangents& cotangents) {
    GradientEntry entry{cotangents.check, course.input, course.index + cotangents.where};
    entry.limit = is_second() ? options_.second_tolerance : options_.tolerance;
    entry.error = infinity;
    double size = 0;
    for (const Move& move : course.direction) {
      entry.analytic += grads[move.input][move.element] * move.amount;
      size += std::abs(grads[move.input][move.element] * move.amount);
    }
    double coarser = infinity;  // the difference at the previous, coarser step
    double coarser_excused = 0;
    for (const double step : {options_.step, options_.step / 8, options_.step / 64}) {
      const double numeric = dot(cotangents.values, along(course, step).central);
      const double excused = differences_.rounding(cotangents.values, step) + roundings_of_sums * size;
      const double error = relative_error(entry.analytic, numeric, excused);
      if (step == options_.step || error < entry.error) {
        entry.numeric = numeric;
        entry.error = error;
      }
      if (error <= entry.limit) {
        count_if_excused(entry, excused);
        return entry;
      }
      // A finer step helps only if the difference still depends on the step.
      if (std::abs(numeric - coarser) <= excused + coarser_excused) break;
      coarser = numeric;
      coarser_excused = excused;
    }
    entry.note = note_of_kink(course, cotangents.values);
    return entry;
  }

  // Counts a derivative that passed only because rounding explains its error. It was compared less strictly
  // than the limit says.
  void count_if_excused(const GradientEntry& entry, double excused) {
    const double close = entry.limit * std::max(std::abs(entry.analytic), std::abs(entry.numeric));
    if (std::abs(entry.analytic - entry.numeric) <= close || excused <= entry.limit * scale_) return;
    ++report_.not_checkable;
    if (scale_ > 0) report_.excused = std::max(report_.excused, excused / scale_);
  }

  const Slopes& along(Course& course, double step) {
    const auto found = course.slopes.find(step);
    if (found != course.slopes.end()) return found->second;
    return course.slopes[step] = differences_.along(course.direction, step);
  }

  // Returns a note if the function has a kink or a jump, and an empty text otherwise. At a kink the one-sided
  // slopes do not approach each other as the step shrinks.
  std::string note_of_kink(Course& course, const std::vector<double>& cotangents) {
    const auto below = [&](double step) { return dot(cotangents, along(course, step).below); };
    const auto above = [&](double step) { return dot(cotangents, along(course, step).above); };
    const double fine = options_.step / 8;
    const double gap = std::abs(above(fine) - below(fine));
    const double coarse_gap = std::abs(above(options_.step) - below(options_.step));
    if (!(gap > coarse_gap / 2 && gap > 4 * differences_.rounding(cotangents, fine))) return {};
    return fmt::format("not differentiable here: the slope is {:.6g} on one side and {:.6g} on the other",
                       below(fine), above(fine));
  }

  // Compares each way of wanting gradients with the first way, which wants all of them. Cotangents that a way
  // leaves out are zero in the first way.
  void check_ways() {
    const std::vector<double> drawn = program_.random_cotangents(random_);
    for (std::size_t way = 1; way < program_.ways().size(); ++way) {
      const GradientProgram::Way& asked = program_.ways()[way];
      std::vector<double> cotangents = drawn;
      for_each_element([&](std::size_t output, std::size_t element) {
        if (!asked.outputs[output]) cotangents[element] = 0;
      });
      const std::vector<Derivatives> all = derive(cotangents);
      for (std::size_t input = 0; input < program_.variables(); ++input)
        if (asked.variables[input]) compare_way(asked.name, input, all[way][input], all[0][input]);
    }
  }

  void compare_way(const std::string& name, std::size_t input, const std::vector<double>& asked,
                   const std::vector<double>& at_once) {
    const double excused = roundings_of_sums * largest_of(at_once);
    for (std::size_t i = 0; i < asked.size(); ++i)
      record({"gradient " + name, inputs_.labels[input], text_of({input, i}), asked[i], at_once[i],
              relative_error(asked[i], at_once[i], excused), tolerance_of_equals});
  }

  // Checks that second derivatives are symmetric: u·(H v) must equal v·(H u).
  void check_symmetry() {
    const std::vector<double> u = program_.random_cotangents(random_);
    const std::vector<double> v = program_.random_cotangents(random_);
    const Derivatives of_u = derive(u)[0];
    const Derivatives of_v = derive(v)[0];
    GradientEntry entry{"symmetry", all_inputs, ""};
    double size = 0;
    std::size_t element = 0;
    for (const std::size_t input : differentiated_)
      for (std::size_t i = 0; i < of_u[input].size(); ++i, ++element) {
        entry.analytic += of_u[input][i] * v[element];
        entry.numeric += of_v[input][i] * u[element];
        size += std::abs(of_u[input][i] * v[element]) + std::abs(of_v[input][i] * u[element]);
      }
    entry.error = relative_error(entry.analytic, entry.numeric, roundings_of_sums * size);
    entry.limit = tolerance_of_equals;
    record(std::move(entry));
  }

  void record(GradientEntry entry) {
    double& worst = is_second() ? report_.worst_second : report_.worst;
    worst = std::max(worst, entry.error);
    ++report_.compared;
    report_.compared_second += is_second();
    if (entry.error <= entry.limit) return;
    if (is_second()) entry.check = "second " + entry.check;
    report_.passed = false;
    const bool is_told = std::ranges::any_of(report_.failures, [&](const GradientEntry& told) {
      return told.check == entry.check && told.input == entry.input && told.index == entry.index;
    });
    if (!is_told && report_.failures.size() < most_failures) report_.failures.push_back(std::move(entry));
  }

  std::vector<std::size_t> differentiated_;
  Random& random_;
  const GradientOptions& options_;
  GradientReport& report_;
  GradientProgram program_;
  GraphInputs inputs_;  // the graph's inputs, with the cotangents of this level
  Runner forward_;
  Differences differences_;
  std::vector<std::size_t> sizes_;  // number of elements of each output
  double scale_ = 0;                // the largest gradient under the current cotangents
};

}  // namespace

std::vector<Node> check_level(Graph& graph, GraphInputs& inputs, const std::vector<Node>& outputs,
                              std::vector<std::size_t> differentiated, Random& random, Backend& backend,
                              const GradientOptions& options, GradientReport& report) {
  Level level(graph, inputs, outputs, std::move(differentiated), random, backend, options, report);
  level.check();
  return level.grads();
}

}  // namespace plexaura::testing
