#include "core/ops/axes.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::axes_test {

namespace {

using reference::at;
using reference::Index;
using Axes = std::vector<std::int64_t>;

OpCase squeezed(Shape from, const Axes& axes, const Shape& expected) {
  return {"squeeze of " + to_string(from) + " to " + to_string(expected),
          "reshape",
          [=](Graph&, auto x) { return std::vector{squeeze(x[0], axes)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{x[0].reshaped(expected)}; }};
}

OpCase unsqueezed(Shape from, std::int64_t axis, const Shape& expected) {
  return {"unsqueeze of " + to_string(from) + " to " + to_string(expected),
          "reshape",
          [=](Graph&, auto x) { return std::vector{unsqueeze(x[0], axis)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{x[0].reshaped(expected)}; }};
}

// `order` contains the axes of x in the order of the result.
OpCase transposed(Shape from, std::int64_t a, std::int64_t b, const Axes& order) {
  return {"transpose of " + to_string(from) + ", axes " + std::to_string(a) + " and " + std::to_string(b),
          "permute",
          [=](Graph&, auto x) { return std::vector{transpose(x[0], a, b)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{reference::permute(x[0], order)}; }};
}

// Element [..., k, ...] of the result is element [...] of part k. `axis` counts from the front.
Tensor stacked(std::span<const Tensor> parts, std::int64_t axis) {
  Axes extents = parts[0].shape().extents();
  extents.insert(extents.begin() + axis, static_cast<std::int64_t>(parts.size()));
  Tensor y = reference::zeros(Shape(extents));
  reference::for_each_index(y.shape(), [&](const Index& index) {
    Index from = index;
    from.erase(from.begin() + axis);
    at(y, index) = at(parts[static_cast<std::size_t>(index[static_cast<std::size_t>(axis)])], from);
  });
  return y;
}

OpCase stack_case(const Shape& part, std::int64_t axis, std::int64_t from_front) {
  return {"stack of " + to_string(part) + ", axis " + std::to_string(axis),
          "concat",
          [=](Graph&, auto x) {
            return std::vector{stack({x[0], x[1], x[2]}, axis)};
          },
          {{part}, {part}, {part}},
          [=](auto x) { return std::vector{stacked(x, from_front)}; }};
}

// Returns the pieces of x along an axis that counts from the front.
std::vector<Tensor> pieces(const Tensor& x, std::size_t axis, const Axes& sizes) {
  std::vector<Tensor> result;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    Axes extents = x.shape().extents();
    extents[axis] = size;
    Tensor piece = reference::zeros(Shape(extents));
    reference::for_each_index(piece.shape(), [&](const Index& index) {
      Index from = index;
      from[axis] += start;
      at(piece, index) = at(x, from);
    });
    result.push_back(std::move(piece));
    start += size;
  }
  return result;
}

using Cut = std::vector<Node> (*)(Operand x);

OpCase cut_case(const std::string& name, Shape from, Cut cut, std::size_t axis, const Axes& sizes) {
  return {name + " of " + to_string(from),
          "slice",
          [=](Graph&, auto x) { return cut(x[0]); },
          {{std::move(from)}},
          [=](auto x) { return pieces(x[0], axis, sizes); }};
}

// Element i of the result is element i modulo the extent of x, which has as many axes as the result.
Tensor tiled(const Tensor& x, const Shape& to) {
  Tensor y = reference::zeros(to);
  reference::for_each_index(to, [&](const Index& index) {
    Index from = index;
    for (std::size_t axis = 0; axis < from.size(); ++axis)
      from[axis] %= x.shape()[static_cast<std::int64_t>(axis)];
    at(y, index) = at(x, from);
  });
  return y;
}

OpCase tile_case(Shape from, const Axes& repeats, const Shape& with_all_axes, const Shape& to) {
  return {"tile of " + to_string(from) + " to " + to_string(to),
          "broadcast_to",
          [=](Graph&, auto x) { return std::vector{tile(x[0], repeats)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{tiled(x[0].reshaped(with_all_axes), to)}; }};
}

const Cases cases({
    squeezed({1, 3, 1, 2}, {}, {3, 2}),
    squeezed({1, 3, 1, 2}, {-2}, {1, 3, 2}),
    squeezed({1, 3, 1}, {2, 0}, {3}),
    squeezed({1, 3, 2}, {1, 0}, {3, 2}),
    squeezed({1, 1}, {}, {}),
    squeezed({}, {}, {}),
    squeezed({1, 0}, {}, {0}),
    unsqueezed({3, 2}, 0, {1, 3, 2}),
    unsqueezed({3, 2}, 2, {3, 2, 1}),
    unsqueezed({3, 2}, -1, {3, 2, 1}),
    unsqueezed({3, 2}, -3, {1, 3, 2}),
    unsqueezed({}, 0, {1}),
    unsqueezed({2, 0}, 1, {2, 1, 0}),
    transposed({2, 3, 4}, 0, 2, {2, 1, 0}),
    transposed({2, 3, 4}, -1, 1, {0, 2, 1}),
    transposed({2, 3}, 1, 1, {0, 1}),
    transposed({2, 0, 3}, 0, 1, {1, 0, 2}),
    stack_case({2, 3}, 0, 0),
    stack_case({2, 3}, 1, 1),
    stack_case({2, 3}, -1, 2),
    stack_case({}, 0, 0),
    stack_case({0, 2}, -3, 0),
    cut_case("split by 2", {5, 2}, [](Operand x) { return split(x, 2); }, 0, {2, 2, 1}),
    cut_case("split by 3, the last axis", {2, 6}, [](Operand x) { return split(x, 3, -1); }, 1, {3, 3}),
    cut_case("split by more than all", {2, 3}, [](Operand x) { return split(x, 9, 1); }, 1, {3}),
    cut_case("split by 2 of nothing", {0, 3}, [](Operand x) { return split(x, 2); }, 0, {0}),
    cut_case("split_with_sizes 1, 0 and 4", {5, 2},
             [](Operand x) {
               return split_with_sizes(x, {1, 0, 4});
             },
             0, {1, 0, 4}),
    cut_case("split_with_sizes 2 and 1, the last axis", {2, 3},
             [](Operand x) {
               return split_with_sizes(x, {2, 1}, -1);
             },
             1, {2, 1}),
    cut_case("chunk in 2", {5, 2}, [](Operand x) { return chunk(x, 2); }, 0, {3, 2}),
    cut_case("chunk in 4, of which 3 suffice", {2, 5}, [](Operand x) { return chunk(x, 4, -1); }, 1,
             {2, 2, 1}),
    cut_case("chunk in more than all", {3, 2}, [](Operand x) { return chunk(x, 7); }, 0, {1, 1, 1}),
    cut_case("chunk in 2 of nothing", {3, 0}, [](Operand x) { return chunk(x, 2, 1); }, 1, {0, 0}),
    tile_case({2, 3}, {2, 3}, {2, 3}, {4, 9}),
    tile_case({3}, {2, 2}, {1, 3}, {2, 6}),
    tile_case({2, 3}, {2}, {2, 3}, {2, 6}),
    tile_case({2, 1}, {1, 1}, {2, 1}, {2, 1}),
    tile_case({}, {3}, {1}, {3}),
    tile_case({}, {}, {}, {}),
    tile_case({2, 3}, {0, 2}, {2, 3}, {0, 6}),
    tile_case({2, 0}, {2, 2}, {2, 0}, {4, 0}),
    {"expand_as",
     "broadcast_to",
     [](Graph&, auto x) { return std::vector{expand_as(x[0], x[1])}; },
     {{{3, 1}}, {{2, 3, 2}, whole(0, 2), DType::int64}},
     [](auto x) {
       return std::vector{reference::broadcast_to(x[0], {2, 3, 2})};
     }},
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
    of_matrix("squeeze an axis that does not exist", "squeeze", [](const Node& x) { squeeze(x, {2}); },
              {"squeeze(float32[2,3]): axis 2 does not exist in a value of rank 2"}),
    of_matrix("squeeze an axis twice", "squeeze",
              [](const Node& x) {
                squeeze(x, {1, -1});
              },
              {"an axis is named twice; name each once"}),
    of_matrix("unsqueeze beyond the end", "unsqueeze", [](const Node& x) { unsqueeze(x, 3); },
              {"unsqueeze(float32[2,3]): axis 3 does not exist in a value of rank 3"}),
    of_matrix("unsqueeze before the start", "unsqueeze", [](const Node& x) { unsqueeze(x, -4); },
              {"axis -4 does not exist in a value of rank 3"}),
    of_matrix("transpose the third axis of two", "transpose", [](const Node& x) { transpose(x, 0, 2); },
              {"transpose(float32[2,3]): axis 2 does not exist in a value of rank 2"}),
    of_matrix("stack two shapes", "stack",
              [](const Node& x) {
                stack({x, transpose(x, 0, 1)});
              },
              {"stack(float32[2,3], float32[3,2]): the parts must have one type and shape", "reshape"}),
    of_matrix("stack along the fourth axis", "stack",
              [](const Node& x) {
                stack({x, x}, 3);
              },
              {"axis 3 does not exist in a value of rank 3"}),
    of_matrix("split by 0", "split", [](const Node& x) { split(x, 0); },
              {"split(float32[2,3]): the size of a piece must be 1 or more, not 0"}),
    of_matrix("split the third axis of two", "split", [](const Node& x) { split(x, 1, 2); },
              {"axis 2 does not exist in a value of rank 2"}),
    of_matrix("split_with_sizes of too few", "split_with_sizes",
              [](const Node& x) {
                split_with_sizes(x, {1, 1}, -1);
              },
              {"the sizes 1, 1 must add up to 3, the extent of axis 1"}),
    of_matrix("split_with_sizes of too many", "split_with_sizes",
              [](const Node& x) {
                split_with_sizes(x, {4, 1}, 1);
              },
              {"the sizes 4, 1 must add up to 3, the extent of axis 1"}),
    of_matrix("split_with_sizes of a negative one", "split_with_sizes",
              [](const Node& x) {
                split_with_sizes(x, {-1, 3});
              },
              {"a size must be 0 or more, not -1"}),
    of_matrix("chunk in 0", "chunk", [](const Node& x) { chunk(x, 0); },
              {"chunk(float32[2,3]): the number of pieces must be 1 or more, not 0"}),
    of_matrix("chunk along the third axis of two", "chunk", [](const Node& x) { chunk(x, 2, -3); },
              {"axis -3 does not exist in a value of rank 2"}),
    of_matrix("tile by a negative number", "tile",
              [](const Node& x) {
                tile(x, {1, -2});
              },
              {"tile(float32[2,3]): a repeat must be 0 or more, not -2"}),
    of_matrix("expand_as another shape", "broadcast_to",
              [](const Node& x) { expand_as(x, transpose(x, 0, 1)); }, {"[3,2]"}),
});

}  // namespace

TEST_CASE("axes: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("axes: what they refuse") { check_all(wrong); }

TEST_CASE("ops that rearrange axes move integers and bools as well") {
  Graph graph;
  const Node numbers = graph.input("numbers", {DType::int64, {2, 2}});
  const Node truths = graph.input("truths", {DType::boolean, {2}});
  const auto results = Runner(
      graph, {transpose(numbers, 0, 1), stack({numbers, numbers}), split(numbers, 1)[1], tile(truths, {2})},
      test_backend())(
      {Tensor::of<std::int64_t>({2, 2}, {1, 2, 3, 4}), Tensor::of<double>({2}, {1, 0}).cast(DType::boolean)});
  CHECK(results[0] == Tensor::of<std::int64_t>({2, 2}, {1, 3, 2, 4}));
  CHECK(results[1] == Tensor::of<std::int64_t>({2, 2, 2}, {1, 2, 3, 4, 1, 2, 3, 4}));
  CHECK(results[2] == Tensor::of<std::int64_t>({1, 2}, {3, 4}));
  CHECK(results[3].to_doubles() == std::vector<double>{1, 0, 1, 0});
}

TEST_CASE("squeeze takes a single axis as a number") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 2, 1}});
  CHECK(squeeze(x, 0).shape() == Shape{2, 1});
  CHECK(squeeze(x, -1).shape() == Shape{1, 2});
}

TEST_CASE("stack takes nodes in a vector") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {4, 3}});
  CHECK(stack(split(x, 2), 1).shape() == Shape{2, 2, 3});
}

TEST_CASE("stack refuses an empty list") {
  CHECK(user_error([] { stack({}); }) == "stack of nothing: it needs at least one part");
}

}  // namespace plexaura::testing::axes_test
