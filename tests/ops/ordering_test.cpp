#include "core/ops/ordering.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>

#include "core/graph/graph.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::ordering_test {

namespace {

using reference::at;
using reference::Index;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

// The places of the elements of a line in order, found by counting how many elements come before each.
std::vector<std::int64_t> order_of(const std::vector<double>& line, bool descending) {
  std::vector<std::int64_t> order(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::size_t before = 0;
    for (std::size_t j = 0; j < line.size(); ++j) {
      const bool comes_first = descending ? line[j] > line[i] : line[j] < line[i];
      if (comes_first || (line[j] == line[i] && j < i)) ++before;
    }
    order[before] = static_cast<std::int64_t>(i);
  }
  return order;
}

// Calls body(line, index of its first element) for each line of x along the axis.
template <class Body>
void for_each_line(const Tensor& x, std::size_t axis, const Body& body) {
  std::vector<std::int64_t> extents = x.shape().extents();
  const std::int64_t extent = std::exchange(extents[axis], 1);
  reference::for_each_index(Shape(extents), [&](Index index) {
    const Index first = index;
    std::vector<double> line;
    for (index[axis] = 0; index[axis] < extent; ++index[axis]) line.push_back(at(x, index));
    body(line, first);
  });
}

Shape with_extent(const Shape& shape, std::size_t axis, std::int64_t extent) {
  std::vector<std::int64_t> extents = shape.extents();
  extents[axis] = extent;
  return Shape(extents);
}

// The values and indices of the places [first, first + count) in order, with the axis.
std::vector<Tensor> part_of_order(const Tensor& x, std::size_t axis, bool descending, std::int64_t first,
                                  std::int64_t count) {
  Tensor values = reference::zeros(with_extent(x.shape(), axis, count));
  Tensor indices = reference::zeros(values.shape());
  for_each_line(x, axis, [&](const std::vector<double>& line, Index index) {
    const std::vector<std::int64_t> order = order_of(line, descending);
    for (std::int64_t i = 0; i < count; ++i) {
      index[axis] = i;
      const std::int64_t place = order[static_cast<std::size_t>(first + i)];
      at(indices, index) = static_cast<double>(place);
      at(values, index) = line[static_cast<std::size_t>(place)];
    }
  });
  return {values, indices};
}

using Build = std::function<ValuesAndIndices(const Node& x)>;

// `keeps` is false if the result lacks the axis.
OpCase ordered(const std::string& name, const Shape& x, std::size_t axis, const Build& build, bool descending,
               std::int64_t first, std::int64_t count, bool keeps = true) {
  return {name + " of " + to_string(x) + ", axis " + std::to_string(axis),
          "argsort",
          [=](Graph&, auto of) { return std::vector{build(of[0]).values}; },
          {{x, distinct(0.25)}},
          [=](auto of) {
            const Tensor values = part_of_order(of[0], axis, descending, first, count)[0];
            if (keeps) return std::vector{values};
            std::vector<std::int64_t> extents = values.shape().extents();
            extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
            return std::vector{values.reshaped(Shape(extents))};
          }};
}

OpCase argsort_case(const Shape& x, std::int64_t axis, std::size_t from_front, bool descending) {
  OpCase op_case{
      "argsort of " + to_string(x) + ", axis " + std::to_string(axis) + (descending ? ", descending" : ""),
      "argsort",
      [=](Graph&, auto of) { return std::vector{argsort(of[0], axis, descending)}; },
      {{x, whole(-3, 4)}},
      [=](auto of) {
        return std::vector{part_of_order(of[0], from_front, descending, 0, x.extents()[from_front])[1]};
      }};
  op_case.differentiable = false;
  return op_case;
}

double interpolated(const std::vector<double>& line, double q, Interpolation by) {
  std::vector<double> sorted = line;
  std::ranges::sort(sorted);
  const double place = q * static_cast<double>(line.size() - 1);
  const double low = sorted[static_cast<std::size_t>(std::floor(place))];
  const double high = sorted[static_cast<std::size_t>(std::ceil(place))];
  const double fraction = place - std::floor(place);
  switch (by) {
    case Interpolation::lower:
      return low;
    case Interpolation::higher:
      return high;
    case Interpolation::midpoint:
      return (low + high) / 2;
    case Interpolation::nearest:
      return sorted[static_cast<std::size_t>(std::nearbyint(place))];
    case Interpolation::linear:
      break;
  }
  return low * (1 - fraction) + high * fraction;
}

OpCase quantile_case(const Shape& x, double q, const QuantileOptions& options, const Shape& to) {
  return {"quantile " + std::to_string(q) + " of " + to_string(x) + " to " + to_string(to) + ", " +
              std::to_string(static_cast<int>(options.interpolation)),
          "argsort",
          [=](Graph&, auto of) { return std::vector{quantile(of[0], q, options)}; },
          {{x, distinct(0.25)}},
          [=](auto of) {
            const Tensor lines = options.axis ? of[0] : of[0].reshaped(Shape{x.elements()});
            const auto axis = static_cast<std::size_t>(options.axis.value_or(0));
            Tensor y = reference::zeros(with_extent(lines.shape(), axis, 1));
            for_each_line(lines, axis, [&](const std::vector<double>& line, const Index& index) {
              at(y, index) = interpolated(line, q, options.interpolation);
            });
            return std::vector{y.reshaped(to)};
          }};
}

const Values ascending = [](std::span<double> values, Random&) {
  static constexpr std::array<double, 8> given{-2, 0, 0, 1, 5, 5, 6, 9};
  std::copy_n(given.begin(), values.size(), values.begin());
};

OpCase search_case(const Shape& sorted, const Shape& values, bool right) {
  OpCase op_case{
      "searchsorted of " + to_string(values) + " in " + to_string(sorted) + (right ? ", right" : ""),
      "searchsorted",
      [=](Graph&, auto of) { return std::vector{searchsorted(of[0], of[1], right)}; },
      {{sorted, ascending}, {values, whole(-3, 11)}},
      [=](auto of) {
        Tensor y = reference::zeros(values);
        reference::for_each_index(values, [&](const Index& index) {
          const std::int64_t extent = sorted[sorted.rank() - 1];
          for (std::int64_t i = 0; i < extent; ++i) {
            Index place{i};
            if (sorted.rank() > 1) place.insert(place.begin(), index.begin(), index.end() - 1);
            const double element = at(of[0], place);
            if (right ? element <= at(of[1], index) : element < at(of[1], index)) ++at(y, index);
          }
        });
        return std::vector{y};
      }};
  op_case.differentiable = false;
  return op_case;
}

const Cases cases({
    argsort_case({7}, 0, 0, false),
    argsort_case({3, 6}, -1, 1, true),
    argsort_case({5, 2, 3}, 0, 0, false),
    argsort_case({2, 0}, 1, 1, false),
    argsort_case({0, 3}, 1, 1, true),
    ordered(
        "sort", {3, 6}, 1, [](const Node& x) { return sort(x); }, false, 0, 6),
    ordered(
        "sort, descending", {4, 3}, 0, [](const Node& x) { return sort(x, 0, true); }, true, 0, 4),
    ordered(
        "sort of one", {3, 1}, 1, [](const Node& x) { return sort(x); }, false, 0, 1),
    ordered(
        "topk", {2, 17}, 1, [](const Node& x) { return topk(x, 5); }, true, 0, 5),
    ordered(
        "topk, the smallest", {9, 2}, 0, [](const Node& x) { return topk(x, 3, 0, false); }, false, 0, 3),
    ordered(
        "topk, none", {2, 3}, 1, [](const Node& x) { return topk(x, 0); }, true, 0, 0),
    ordered(
        "topk, all", {2, 3}, 1, [](const Node& x) { return topk(x, 3); }, true, 0, 3),
    ordered(
        "kthvalue", {2, 7}, 1, [](const Node& x) { return kthvalue(x, 3); }, false, 2, 1, false),
    ordered(
        "kthvalue, keepdims", {5, 2}, 0, [](const Node& x) { return kthvalue(x, 5, 0, true); }, false, 4, 1),
    ordered(
        "median", {2, 7}, 1, [](const Node& x) { return median(x, -1); }, false, 3, 1, false),
    ordered(
        "median of an even number", {6, 2}, 0, [](const Node& x) { return median(x, 0); }, false, 2, 1,
        false),
    quantile_case({3, 6}, 0.3, {.axis = 1}, {3}),
    quantile_case({6, 2}, 0.75, {.axis = 0, .keepdims = true}, {1, 2}),
    quantile_case({3, 3}, 0.4, {}, {}),
    quantile_case({2, 3}, 0.4, {.keepdims = true}, {1, 1}),
    quantile_case({2, 6}, 0, {.axis = 1}, {2}),
    quantile_case({2, 6}, 1, {.axis = 1}, {2}),
    quantile_case({2, 6}, 0.5, {.axis = 1, .interpolation = Interpolation::lower}, {2}),
    quantile_case({2, 6}, 0.5, {.axis = 1, .interpolation = Interpolation::higher}, {2}),
    quantile_case({2, 6}, 0.3, {.axis = 1, .interpolation = Interpolation::midpoint}, {2}),
    quantile_case({2, 6}, 0.5, {.axis = 1, .interpolation = Interpolation::nearest}, {2}),
    quantile_case({2, 6}, 0.7, {.axis = 1, .interpolation = Interpolation::nearest}, {2}),
    search_case({8}, {9}, false),
    search_case({8}, {2, 5}, true),
    search_case({2, 4}, {2, 7}, false),
    search_case({2, 4}, {2, 3}, true),
    search_case({0}, {3}, false),
    search_case({1}, {1}, true),
    search_case({8}, {}, false),
});

WrongCase of_matrix(const std::string& name, const std::string& op, std::function<void(const Node&)> build,
                    std::vector<std::string> words) {
  return {name, op,
          [build = std::move(build)](Graph& graph) {
            build(graph.input("x", {DType::float32, {2, 3}}));
          },
          std::move(words)};
}

const WrongCases wrong({
    of_matrix("argsort along no axis", "argsort", [](const Node& x) { argsort(x, 2); },
              {"argsort(float32[2,3]): axis 2 does not exist"}),
    of_matrix("argsort for too many", "argsort",
              [](const Node& x) { apply(std::make_shared<ArgSort>(ArgSortOptions{.count = 4}), {x}); },
              {"an axis of 3 has no 4 first elements"}),
    {"argsort of a scalar",
     "argsort",
     [](Graph& graph) {
       argsort(graph.input("x", {DType::float32, {}}));
     },
     {"axis -1 does not exist"}},
    of_matrix("searchsorted of values with another number of axes", "searchsorted",
              [](const Node& x) {
                searchsorted(x, x.graph().input("v", {DType::float32, {2, 5, 1}}));
              },
              {"must have one axis, or all axes of the values"}),
    of_matrix("searchsorted in a scalar", "searchsorted",
              [](const Node& x) {
                searchsorted(x.graph().input("s", {DType::float32, {}}), x);
              },
              {"must have one axis, or all axes of the values"}),
    of_matrix("sort along no axis", "sort", [](const Node& x) { sort(x, -3); }, {"axis -3 does not exist"}),
    of_matrix("topk of more than all", "topk", [](const Node& x) { topk(x, 4); },
              {"k must be from 0 to 3, not 4"}),
    of_matrix("topk of less than none", "topk", [](const Node& x) { topk(x, -1, 0); },
              {"k must be from 0 to 2, not -1"}),
    of_matrix("kthvalue 0", "kthvalue", [](const Node& x) { kthvalue(x, 0); },
              {"k must be from 1 to 3, not 0"}),
    of_matrix("median of bools", "median", [](const Node& x) { median(cast(x, DType::boolean), 0); },
              {"not for bool", "cast()"}),
    {"median of nothing",
     "median",
     [](Graph& graph) {
       median(graph.input("x", {DType::float32, {2, 0}}), 1);
     },
     {"median(float32[2,0]): axis 1 is empty"}},
    of_matrix("quantile beyond 1", "quantile", [](const Node& x) { quantile(x, 1.5); },
              {"q must be from 0 to 1, not 1.5"}),
    of_matrix("quantile of nan", "quantile", [](const Node& x) { quantile(x, nan); },
              {"q must be from 0 to 1"}),
    of_matrix("quantile of integers", "quantile", [](const Node& x) { quantile(cast(x, DType::int64), 0.5); },
              {"floating", "cast()"}),
    of_matrix("quantile along no axis", "quantile", [](const Node& x) { quantile(x, 0.5, {.axis = 2}); },
              {"axis 2 does not exist"}),
    of_matrix("searchsorted of two dtypes", "searchsorted",
              [](const Node& x) { searchsorted(cast(x, DType::float64), x); }, {"one dtype", "cast()"}),
    {"searchsorted of other lines",
     "searchsorted",
     [](Graph& graph) {
       searchsorted(graph.input("x", {DType::float32, {2, 3}}), graph.input("y", {DType::float32, {3, 3}}));
     },
     {"must have one axis, or all axes of the values"}},
});

std::vector<Tensor> run(const Tensor& value, const std::function<std::vector<Node>(const Node&)>& build) {
  Graph graph;
  const Node x = graph.input("x", value.type());
  return Runner(graph, build(x), test_backend())({value});
}

std::vector<Node> both(const ValuesAndIndices& found) { return {found.values, found.indices}; }

const Tensor with_nans = Tensor::of<float>({5}, {2, static_cast<float>(nan), 1, static_cast<float>(nan), 3});

}  // namespace

TEST_CASE("ordering: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("ordering: what it refuses") { check_all(wrong); }

TEST_CASE("equal elements keep their order, and NaN is larger than any number") {
  for (const bool descending : {false, true}) {
    const auto order =
        run(with_nans, [&](const Node& x) { return std::vector{argsort(x, 0, descending)}; })[0];
    CHECK(order == (descending ? Tensor::of<std::int64_t>({5}, {1, 3, 4, 0, 2})
                               : Tensor::of<std::int64_t>({5}, {2, 0, 4, 1, 3})));
    const Tensor ones = Tensor::of<std::int64_t>({6}, {1, 0, 1, 0, 1, 1});
    const auto of_ties = run(ones, [&](const Node& x) {
      return std::vector{argsort(x, 0, descending), topk(x, 3, 0, descending).indices};
    });
    CHECK(of_ties[0] == (descending ? Tensor::of<std::int64_t>({6}, {0, 2, 4, 5, 1, 3})
                                    : Tensor::of<std::int64_t>({6}, {1, 3, 0, 2, 4, 5})));
    CHECK(of_ties[1] ==
          (descending ? Tensor::of<std::int64_t>({3}, {0, 2, 4}) : Tensor::of<std::int64_t>({3}, {1, 3, 0})));
  }
}

TEST_CASE("the median and the quantiles of values with a NaN are NaN") {
  const auto results = run(with_nans, [](const Node& x) {
    return std::vector{median(x, 0).values, median(x, 0).indices, quantile(x, 0), quantile(x, 0.5),
                       kthvalue(x, 1).values};
  });
  for (const std::size_t i : {0, 2, 3}) CHECK(std::isnan(results[i].to_doubles()[0]));
  CHECK(results[1] == Tensor::scalar(std::int64_t{1}));
  CHECK(results[4].to_doubles()[0] == 1);
}

TEST_CASE("a quantile between infinite elements is infinite") {
  const auto results = run(Tensor::of<double>({4}, {-infinity, -infinity, 1, infinity}), [](const Node& x) {
    return std::vector{quantile(x, 0.1), quantile(x, 0.5), quantile(x, 0.9)};
  });
  CHECK(results[0].to_doubles()[0] == -infinity);
  CHECK(results[1].to_doubles()[0] == -infinity);
  CHECK(results[2].to_doubles()[0] == infinity);
}

TEST_CASE("the indices of an order belong to its values") {
  const Tensor x = Tensor::of<std::int64_t>({2, 3}, {5, -1, 2, 0, 9, 9});
  const auto sorted = run(x, [](const Node& node) { return both(sort(node)); });
  CHECK(sorted[0] == Tensor::of<std::int64_t>({2, 3}, {-1, 2, 5, 0, 9, 9}));
  CHECK(sorted[1] == Tensor::of<std::int64_t>({2, 3}, {1, 2, 0, 0, 1, 2}));
  const auto middle = run(x, [](const Node& node) { return both(median(node, 1, true)); });
  CHECK(middle[0] == Tensor::of<std::int64_t>({2, 1}, {2, 9}));
  CHECK(middle[1] == Tensor::of<std::int64_t>({2, 1}, {2, 1}));
  const auto second = run(x, [](const Node& node) { return both(kthvalue(node, 2, 0)); });
  CHECK(second[0] == Tensor::of<std::int64_t>({3}, {5, 9, 9}));
  CHECK(second[1] == Tensor::of<std::int64_t>({3}, {0, 1, 1}));
  CHECK(run(x, [](const Node& node) { return std::vector{median(node)}; })[0] ==
        Tensor::scalar(std::int64_t{2}));
}

TEST_CASE("searchsorted counts a NaN as larger than any number") {
  const auto places = run(Tensor::of<float>({3}, {1, 2, static_cast<float>(nan)}), [](const Node& x) {
    return std::vector{searchsorted(x, x), searchsorted(x, x, true)};
  });
  CHECK(places[0] == Tensor::of<std::int64_t>({3}, {0, 1, 2}));
  CHECK(places[1] == Tensor::of<std::int64_t>({3}, {1, 2, 3}));
}

}  // namespace plexaura::testing::ordering_test
