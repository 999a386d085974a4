#include "tests/support/random_graph/sketch.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/splitmix.h"

namespace plexaura::testing {

namespace {

constexpr std::int64_t most_elements = 600;  // of a value that is an operand

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  return splitmix_scatter(a ^ splitmix_scatter(b + splitmix_step));
}

bool is_part_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

std::vector<std::string> split_names(std::string_view names) {
  std::vector<std::string> all(1);
  for (const char letter : names) {
    if (letter == ',')
      all.emplace_back();
    else if (is_part_of_name(letter))
      all.back() += letter;
  }
  return all;
}

bool broadcasts(const Shape& a, const Shape& b) {
  try {
    return broadcast(a, b).elements() <= most_elements;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace

void Sketch::begin(std::uint64_t seed) {
  seed_ = seed;
  choices_ = 0;
  random_.emplace(seed);
}

// Takes the suitable node whose mark, mixed with the number of this choice, is largest. So it takes the same node if
// another one is missing. Half of the time it takes the last one, which makes graphs deep, and one time in eight none.
template <class Suits>
std::optional<Node> Sketch::choose(Suits suits) {
  const std::uint64_t choice = mixed(seed_, ++choices_);
  if (choice % 8 == 7) return {};
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (suits(nodes_[i]) &&
        (!best || choice % 2 == 0 || mixed(choice, marks_[i]) > mixed(choice, marks_[*best])))
      best = i;
  if (!best) return {};
  return nodes_[*best];
}

Node Sketch::of_rank(std::int64_t lowest, std::int64_t highest) {
  const auto found = choose([&](const Node& node) {
    const bool is_empty = node.shape().elements() == 0;
    return node.shape().rank() >= lowest && node.shape().rank() <= highest && !(is_empty && lowest > 0);
  });
  return found
             ? *found
             : leaf(shape(from(lowest, std::min<std::int64_t>(highest, std::max<std::int64_t>(lowest, 4)))));
}

Node Sketch::square_matrix() {
  const auto found = choose([](const Node& node) {
    const Shape& shape = node.shape();
    return shape.rank() == 2 && shape[0] == shape[1] && shape[0] > 0 && shape[0] < 6;
  });
  if (found) return *found;
  const std::int64_t rows = from(1, 4);
  return leaf({rows, rows});
}

Node Sketch::like(const Shape& shape) {
  const auto found = choose([&](const Node& node) { return node.shape() == shape; });
  return found ? *found : leaf(shape);
}

Node Sketch::beside(const Shape& shape) {
  const auto found = choose([&](const Node& node) { return broadcasts(node.shape(), shape); });
  if (found) return *found;
  const auto dropped = static_cast<std::ptrdiff_t>(below(shape.rank() + 1)) * (coin() ? 1 : 0);
  std::vector<std::int64_t> extents(shape.begin() + dropped, shape.end());
  for (std::int64_t& extent : extents)
    if (below(4) == 0) extent = 1;
  return leaf(Shape(extents));
}

Node Sketch::leaf(Shape shape) {
  const bool is_parameter = below(3) == 0;
  const std::string name = fmt::format("{}{}", is_parameter ? "p" : "x", leaves_.size());
  const TensorType type{dtype_, std::move(shape)};
  const Node node = is_parameter ? graph_.parameter(name, type) : graph_.input(name, type);
  leaves_.push_back({name, type, is_parameter, node});
  add(node, fmt::format("graph.{}(\"{}\", {{{}, {}}})", is_parameter ? "parameter" : "input", name,
                        text_of(dtype_), text_of(type.shape)));
  return node;
}

Node Sketch::integers(const Shape& shape, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t& number : numbers) number = from(low, std::max(low, high - 1));
  const Node node = graph_.constant(Tensor::of(shape, numbers));
  text_ += fmt::format("const Node {} = graph.constant(Tensor::of({}, std::vector<std::int64_t>{}));\n",
                       name_new(node), text_of(shape), text_of(numbers));
  return node;
}

std::int64_t Sketch::axis_of(const Node& node) {
  const std::int64_t rank = node.shape().rank();
  return from(-rank, rank - 1);
}

std::vector<std::int64_t> Sketch::axes_of(const Node& node) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < node.shape().rank(); ++axis)
    if (coin()) axes.push_back(axis);
  return axes;
}

std::vector<std::int64_t> Sketch::order_of(const Node& node) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < node.shape().rank(); ++axis)
    axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(below(axis + 1)), axis);
  return axes;
}

std::vector<std::int64_t> Sketch::extents_of(const Node& node) {
  std::vector<std::int64_t> extents;
  std::int64_t left = node.shape().elements();
  for (const std::int64_t divisor : {2, 3, 4, 5}) {
    if (left == 0 || left % divisor != 0 || coin()) continue;
    extents.push_back(divisor);
    left /= divisor;
  }
  extents.insert(
      extents.begin() + static_cast<std::ptrdiff_t>(below(static_cast<std::int64_t>(extents.size()) + 1)),
      left);
  return extents;
}

Shape Sketch::shape(std::int64_t rank) {
  constexpr std::int64_t extents_to_choose[] = {1, 2, 3, 4, 5, 2, 3, 4, 8, 17};
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    std::int64_t extent = extents_to_choose[below(10)];
    if (elements * extent > most_elements / 2) extent = from(1, 2);
    elements *= extent;
    extents.push_back(extent);
  }
  return Shape(extents);
}

void Sketch::add(const Node& result, const std::string& expression) {
  text_ +=
      fmt::format("const Node {} = {};  // {}\n", name_new(result), expression, to_string(result.type()));
  if (result.dtype() != dtype_ || result.shape().elements() > most_elements) return;
  nodes_.push_back(result);
  marks_.push_back(mixed(seed_, ~(++choices_)));
}

std::string Sketch::name_new(const Node& node) {
  return names_.emplace(node.value(), fmt::format("n{}", names_.size())).first->second;
}

std::string Sketch::replaced(std::string_view expression, std::string_view names,
                             const std::vector<std::string>& values) {
  const std::vector<std::string> known = split_names(names);
  std::string result;
  for (std::size_t at = 0; at < expression.size();) {
    std::size_t end = at;
    while (end < expression.size() && is_part_of_name(expression[end])) ++end;
    const std::string word(expression.substr(at, end - at));
    const bool is_field = at > 0 && expression[at - 1] == '.';
    const auto found = std::ranges::find(known, word);
    if (word.empty())
      result += expression[end++];
    else
      result +=
          is_field || found == known.end() ? word : values[static_cast<std::size_t>(found - known.begin())];
    at = end;
  }
  return result;
}

std::string Sketch::text_of(const std::vector<std::int64_t>& numbers) const {
  return fmt::format("{{{}}}", fmt::join(numbers, ", "));
}

}  // namespace plexaura::testing
