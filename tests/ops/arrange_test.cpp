#include "core/ops/arrange.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::arrange_test {

namespace {

using reference::at;
using reference::Index;
using Axes = std::vector<std::int64_t>;

// Each element of the result is the one of x to which `from` maps its index, or `otherwise` if there is none.
template <class From>
Tensor mapped(const Tensor& x, const Shape& to, const From& from, double otherwise = 0) {
  Tensor y = reference::zeros(to);
  reference::for_each_index(to, [&](const Index& index) {
    const std::optional<Index> place = from(index);
    at(y, index) = place ? at(x, *place) : otherwise;
  });
  return y;
}

template <class Build, class From>
OpCase case_of_map(const std::string& name, const std::string& op, const Shape& x, const Build& build,
                   const Shape& to, const From& from, double otherwise = 0) {
  return {name + " of " + to_string(x),
          op,
          [=](Graph&, auto of) { return std::vector{build(of[0])}; },
          {{x}},
          [=](auto of) { return std::vector{mapped(of[0], to, from, otherwise)}; }};
}

// `flipped` are all axes, from the front.
OpCase flip_case(const Shape& x, const Axes& axes, const std::vector<std::size_t>& flipped) {
  return case_of_map(
      "flip, " + std::to_string(axes.size()) + " axes", "slice", x,
      [=](const Node& node) { return flip(node, axes); }, x,
      [=](Index index) {
        for (const std::size_t axis : flipped)
          index[axis] = x[static_cast<std::int64_t>(axis)] - 1 - index[axis];
        return std::optional(index);
      });
}

OpCase roll_case(const Shape& x, std::int64_t shift, std::int64_t axis, std::size_t from_front) {
  const std::int64_t extent = x.extents()[from_front];
  return case_of_map(
      "roll by " + std::to_string(shift), "concat", x,
      [=](const Node& node) { return roll(node, {shift}, {axis}); }, x,
      [=](Index index) {
        index[from_front] = (((index[from_front] - shift) % extent) + extent) % extent;
        return std::optional(index);
      });
}

// The place in an axis of the element at a place that lies outside.
std::int64_t place_by_mode(std::int64_t place, std::int64_t extent, PadMode mode) {
  if (mode == PadMode::replicate) return std::min(std::max<std::int64_t>(place, 0), extent - 1);
  if (mode == PadMode::circular) return (place + extent) % extent;
  return place < 0 ? -place : (place >= extent ? 2 * (extent - 1) - place : place);
}

OpCase pad_case(const std::string& name, const Shape& x, const std::vector<AxisPadding>& widths,
                const PadOptions& options) {
  Axes extents = x.extents();
  for (const AxisPadding& width : widths) {
    const auto axis = static_cast<std::size_t>(width.axis < 0 ? width.axis + x.rank() : width.axis);
    extents[axis] += width.before + width.after;
  }
  return case_of_map(
      "pad, " + name, "concat", x, [=](const Node& node) { return pad(node, widths, options); },
      Shape(extents),
      [=](Index index) -> std::optional<Index> {
        for (const AxisPadding& width : widths) {
          const std::int64_t axis = width.axis < 0 ? width.axis + x.rank() : width.axis;
          std::int64_t& place = index[static_cast<std::size_t>(axis)];
          place -= width.before;
          if (place >= 0 && place < x[axis]) continue;
          if (options.mode == PadMode::constant) return {};
          place = place_by_mode(place, x[axis], options.mode);
        }
        return index;
      },
      options.value);
}

OpCase triangle_case(const Shape& x, std::int64_t diagonal, bool upper) {
  return case_of_map((upper ? "triu, " : "tril, ") + std::to_string(diagonal), "where", x,
                     [=](const Node& node) { return upper ? triu(node, diagonal) : tril(node, diagonal); }, x,
                     [=](const Index& index) {
                       const std::int64_t above = index[index.size() - 1] - index[index.size() - 2];
                       return (upper ? above >= diagonal : above <= diagonal) ? std::optional(index)
                                                                              : std::nullopt;
                     });
}

// `others` are the extents of the axes that are neither rows nor columns.
OpCase diagonal_case(const Shape& x, std::int64_t offset, std::int64_t row_axis, std::int64_t column_axis,
                     Axes others, std::int64_t count) {
  others.push_back(count);
  const auto from_front = [&](std::int64_t axis) {
    return static_cast<std::ptrdiff_t>(axis < 0 ? axis + x.rank() : axis);
  };
  const std::ptrdiff_t row = from_front(row_axis);
  const std::ptrdiff_t column = from_front(column_axis);
  return case_of_map(
      "diagonal " + std::to_string(offset) + ", axes " + std::to_string(row_axis) + " and " +
          std::to_string(column_axis),
      "slice", x, [=](const Node& node) { return diagonal(node, offset, row_axis, column_axis); },
      Shape(others),
      [=](Index index) {
        const std::int64_t i = index.back();
        const std::int64_t of_row = offset < 0 ? i - offset : i;
        const std::int64_t of_column = offset < 0 ? i : i + offset;
        index.pop_back();
        const bool row_first = row < column;
        index.insert(index.begin() + std::min(row, column), row_first ? of_row : of_column);
        index.insert(index.begin() + std::max(row, column), row_first ? of_column : of_row);
        return std::optional(index);
      });
}

const Cases cases({
    flip_case({3, 4}, {1}, {1}),
    flip_case({3, 4}, {-2}, {0}),
    flip_case({2, 3, 4}, {}, {0, 1, 2}),
    flip_case({2, 3, 4}, {2, 0}, {0, 2}),
    flip_case({1, 3}, {0}, {0}),
    flip_case({0, 3}, {0, 1}, {0, 1}),
    roll_case({5, 2}, 2, 0, 0),
    roll_case({2, 5}, -1, -1, 1),
    roll_case({2, 5}, 13, 1, 1),
    case_of_map(
        "roll in row-major order", "concat", {2, 3}, [](const Node& x) { return roll(x, {1}); }, {2, 3},
        [](const Index& index) {
          const std::int64_t place = (index[0] * 3 + index[1] + 5) % 6;
          return std::optional(Index{place / 3, place % 3});
        }),
    case_of_map(
        "roll along two axes, one twice", "concat", {2, 3},
        [](const Node& x) {
          return roll(x, {1, 1, 1}, {0, 1, -1});
        },
        {2, 3},
        [](const Index& index) {
          return std::optional(Index{(index[0] + 1) % 2, (index[1] + 1) % 3});
        }),
    pad_case("zeros", {2, 3}, {{1, 2, 1}}, {}),
    pad_case("a number, both axes", {2, 3}, {{0, 1, 0}, {-1, 0, 2}}, {.value = 7}),
    pad_case("an empty axis", {2, 0}, {{1, 1, 1}}, {.value = 2}),
    pad_case("reflect", {4, 2}, {{0, 3, 2}}, {.mode = PadMode::reflect}),
    pad_case("reflect, both axes", {3, 4}, {{0, 1, 1}, {1, 2, 0}}, {.mode = PadMode::reflect}),
    pad_case("replicate", {2, 3}, {{1, 5, 1}}, {.mode = PadMode::replicate}),
    pad_case("circular", {2, 3}, {{1, 3, 2}, {0, 0, 1}}, {.mode = PadMode::circular}),
    triangle_case({3, 4}, 0, true),
    triangle_case({3, 4}, 1, true),
    triangle_case({2, 4, 3}, -2, true),
    triangle_case({3, 4}, 9, true),
    triangle_case({3, 4}, 0, false),
    triangle_case({3, 4}, 2, false),
    triangle_case({2, 4, 3}, -1, false),
    triangle_case({3, 4}, -9, false),
    diagonal_case({3, 3}, 0, 0, 1, {}, 3),
    diagonal_case({3, 5}, 1, 0, 1, {}, 3),
    diagonal_case({3, 5}, 3, 0, 1, {}, 2),
    diagonal_case({5, 3}, -1, 0, 1, {}, 3),
    diagonal_case({5, 3}, -3, 0, 1, {}, 2),
    diagonal_case({3, 4}, 4, 0, 1, {}, 0),
    diagonal_case({3, 4}, -7, 0, 1, {}, 0),
    diagonal_case({3, 2, 4}, 1, 0, -1, {2}, 3),
    diagonal_case({3, 2, 4}, 1, 2, 0, {2}, 2),
    diagonal_case({0, 2}, 0, 0, 1, {}, 0),
});

WrongCase of_matrix(const std::string& name, std::function<void(const Node&)> build,
                    std::vector<std::string> words) {
  return {name, name.substr(0, name.find(' ')),
          [build = std::move(build)](Graph& graph) {
            build(graph.input("x", {DType::float32, {2, 3}}));
          },
          std::move(words)};
}

const WrongCases wrong({
    of_matrix("flip along no axis", [](const Node& x) { flip(x, {2}); },
              {"flip(float32[2,3]): axis 2 does not exist"}),
    of_matrix("flip twice",
              [](const Node& x) {
                flip(x, {0, -2});
              },
              {"an axis is named twice"}),
    of_matrix("roll by two shifts",
              [](const Node& x) {
                roll(x, {1, 2});
              },
              {"needs exactly one shift if no axes are named"}),
    of_matrix("roll by one shift for two axes",
              [](const Node& x) {
                roll(x, {1}, {0, 1});
              },
              {"needs one shift for each axis"}),
    of_matrix("roll along no axis", [](const Node& x) { roll(x, {1}, {-3}); }, {"axis -3 does not exist"}),
    of_matrix("pad along no axis",
              [](const Node& x) {
                pad(x, {{2, 1, 1}});
              },
              {"pad(float32[2,3]): axis 2 does not exist"}),
    of_matrix("pad twice",
              [](const Node& x) {
                pad(x, {{1, 1, 1}, {-1, 0, 0}});
              },
              {"an axis is named twice"}),
    of_matrix("pad less than nothing",
              [](const Node& x) {
                pad(x, {{1, 1, -1}});
              },
              {"the elements to add along axis 1 must be 0 or more", "slice()"}),
    of_matrix("pad by too long a reflection",
              [](const Node& x) {
                pad(x, {{1, 0, 3}}, {.mode = PadMode::reflect});
              },
              {"reflect can add at most 2 elements at an end of axis 1, not 3"}),
    of_matrix("pad by more than a circle",
              [](const Node& x) {
                pad(x, {{1, 4, 0}}, {.mode = PadMode::circular});
              },
              {"circular can add at most 3 elements at an end of axis 1, not 4"}),
    of_matrix("pad by a value that has no effect",
              [](const Node& x) {
                pad(x, {{1, 1, 0}}, {.mode = PadMode::reflect, .value = 1});
              },
              {"a value has no effect unless the mode is constant"}),
    of_matrix("diagonal of one axis", [](const Node& x) { diagonal(x, 0, 1, -1); },
              {"rows and columns must be two different axes"}),
    of_matrix("diagonal along no axis", [](const Node& x) { diagonal(x, 0, 0, 2); },
              {"axis 2 does not exist"}),
    {"triu of a vector",
     "triu",
     [](Graph& graph) {
       triu(graph.input("x", {DType::float32, {3}}));
     },
     {"triu(float32[3]): needs two axes"}},
    {"tril of a vector",
     "tril",
     [](Graph& graph) {
       tril(graph.input("x", {DType::float32, {3}}));
     },
     {"tril(float32[3]): needs two axes"}},
    {"pad an empty axis by its end",
     "pad",
     [](Graph& graph) {
       pad(graph.input("x", {DType::float32, {0}}), {{0, 1, 0}}, {.mode = PadMode::replicate});
     },
     {"axis 0 is empty and has no element to replicate"}},
});

}  // namespace

TEST_CASE("arrange: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("arrange: what it refuses") { check_all(wrong); }

TEST_CASE("ops that arrange elements take integers and bools") {
  Graph graph;
  const Node numbers = graph.input("numbers", {DType::int64, {2, 2}});
  const Node truths = cast(numbers, DType::boolean);
  const auto results = Runner(graph, {pad(numbers, {{0, 1, 0}}, {.value = -3}), triu(flip(truths, {0}))},
                              test_backend())({Tensor::of<std::int64_t>({2, 2}, {1, 0, 3, 4})});
  CHECK(results[0] == Tensor::of<std::int64_t>({3, 2}, {-3, -3, 1, 0, 3, 4}));
  CHECK(results[1].to_doubles() == std::vector<double>{1, 1, 0, 0});
}

}  // namespace plexaura::testing::arrange_test
