#include "core/ops/recurrence.h"

#include <cmath>
#include <doctest/doctest.h>
#include <functional>

#include "core/graph/graph.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::recurrence_test {

namespace {

using reference::at;
using reference::Index;

// The sum, over all elements so far, of b times the product of all later a.
Tensor expected_values(const Tensor& a, const Tensor& b, std::size_t axis, bool reverse) {
  const std::int64_t direction = reverse ? -1 : 1;
  Tensor y = reference::zeros(a.shape());
  reference::for_each_index(a.shape(), [&](const Index& index) {
    const std::int64_t start = reverse ? a.shape()[static_cast<std::int64_t>(axis)] - 1 : 0;
    for (std::int64_t from = start; from != index[axis] + direction; from += direction) {
      Index place = index;
      place[axis] = from;
      double term = at(b, place);
      while (place[axis] != index[axis]) {
        place[axis] += direction;
        term *= at(a, place);
      }
      at(y, index) += term;
    }
  });
  return y;
}

OpCase recurrence_case(const Shape& shape, const RecurrenceOptions& options, std::size_t axis) {
  return {"linear_recurrence of " + to_string(shape) + ", " + to_string(description_of(options)),
          "linear_recurrence",
          [=](Graph&, auto x) { return std::vector{linear_recurrence(x[0], x[1], options)}; },
          {{shape}, {shape}},
          [=](auto x) { return std::vector{expected_values(x[0], x[1], axis, options.reverse)}; }};
}

OpCase product_case(const std::string& name, const Shape& shape, std::int64_t axis, std::size_t from_front,
                    const Values& values) {
  return {"cumprod, " + name,
          "linear_recurrence",
          [=](Graph&, auto x) { return std::vector{cumprod(x[0], axis)}; },
          {{shape, values}},
          [=](auto x) {
            Tensor y = reference::zeros(shape);
            reference::for_each_index(shape, [&](const Index& index) {
              double product = 1;
              Index place = index;
              for (place[from_front] = 0; place[from_front] <= index[from_front]; ++place[from_front])
                product *= at(x[0], place);
              at(y, index) = product;
            });
            return std::vector{y};
          }};
}

const Cases cases({
    recurrence_case({6}, {}, 0),
    recurrence_case({3, 6}, {.axis = -1}, 1),
    recurrence_case({3, 5}, {.axis = 1, .reverse = true}, 1),
    recurrence_case({2, 7, 3}, {.axis = 1}, 1),
    recurrence_case({2, 3, 70}, {.axis = 1}, 1),
    recurrence_case({3, 33}, {.axis = 0, .reverse = true}, 0),
    recurrence_case({4, 1}, {.axis = 1}, 1),
    recurrence_case({2, 0}, {.axis = 1, .reverse = true}, 1),
    recurrence_case({0, 4}, {.axis = 1}, 1),
    product_case("rows", {4, 3}, 0, 0, away_from_zero(0.5, 1.5)),
    product_case("columns", {2, 7}, -1, 1, away_from_zero(0.5, 1.5)),
    product_case("a zero, and two of them", {2, 4}, 1, 1, these({2, 0, -1.5, 3, 0, 1.25, 0, 2})),
    product_case("one element", {1}, 0, 0, between(1, 2)),
    product_case("nothing", {2, 0}, 1, 1, between(1, 2)),
});

WrongCase of_two(const std::string& name, const TensorType& a, const TensorType& b, std::int64_t axis,
                 const std::string& words) {
  return {"linear_recurrence, " + name,
          "linear_recurrence",
          [=](Graph& graph) { linear_recurrence(graph.input("a", a), graph.input("b", b), {.axis = axis}); },
          {words}};
}

WrongCase of_one(const std::string& name, DType dtype, std::int64_t axis, const std::string& words) {
  return {"cumprod, " + name,
          "cumprod",
          [=](Graph& graph) {
            cumprod(graph.input("x", {dtype, {2, 3}}), axis);
          },
          {words}};
}

const WrongCases wrong({
    of_two("two shapes", {DType::float32, {2, 3}}, {DType::float32, {3}}, 0, "one type and shape"),
    of_two("two dtypes", {DType::float32, {2}}, {DType::float64, {2}}, 0, "one type and shape"),
    of_two("bools", {DType::boolean, {2}}, {DType::boolean, {2}}, 0, "not for bool"),
    of_two("no axis", {DType::float32, {2}}, {DType::float32, {2}}, 1, "axis 1 does not exist"),
    of_one("bools", DType::boolean, 0, "cumprod(bool[2,3]): is defined for numbers, not for bool"),
    of_one("no axis", DType::float32, 2, "cumprod(float32[2,3]): axis 2 does not exist"),
});

Tensor run(const Tensor& value, const std::function<Node(const Node&)>& build) {
  Graph graph;
  const Node x = graph.input("x", value.type());
  return Runner(graph, {build(x)}, test_backend())({value})[0];
}

}  // namespace

TEST_CASE("recurrence: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("recurrence: what it refuses") { check_all(wrong); }

TEST_CASE("cumprod of integers is exact and wraps around in their own dtype") {
  const auto product = [](const Node& x) { return cumprod(x, 0); };
  CHECK(run(Tensor::of<std::int64_t>({3}, {(1LL << 40) + 1, -3, 5}), product) ==
        Tensor::of<std::int64_t>({3}, {(1LL << 40) + 1, -3 * ((1LL << 40) + 1), -15 * ((1LL << 40) + 1)}));
  CHECK(run(Tensor::of<std::uint8_t>({3}, {100, 3, 2}), product) ==
        Tensor::of<std::uint8_t>({3}, {100, 44, 88}));
}

TEST_CASE("lines that are computed together have the bits of single lines") {
  const auto product = [](const Node& x) { return cumprod(x, 1); };
  const auto reversed = [](const Node& x) { return linear_recurrence(x, x, {.axis = 1, .reverse = true}); };
  const Tensor x = pattern({2, 5, 70}, 11).cast(DType::float32);
  for (const auto& op :
       {std::function<Node(const Node&)>(product), std::function<Node(const Node&)>(reversed)}) {
    const Tensor together = run(x, op);
    for (std::int64_t line = 0; line < 70; ++line) {
      Tensor one({DType::float32, {2, 5, 1}});
      for (std::int64_t i = 0; i < 10; ++i)
        one.as<float>()[static_cast<std::size_t>(i)] = x.as<float>()[static_cast<std::size_t>(70 * i + line)];
      const Tensor alone = run(one, op);
      for (std::int64_t i = 0; i < 10; ++i)
        CHECK(alone.as<float>()[static_cast<std::size_t>(i)] ==
              together.as<float>()[static_cast<std::size_t>(70 * i + line)]);
    }
  }
}

TEST_CASE("the first factor of a recurrence has no effect") {
  const float nan = std::nanf("");
  const Tensor result = run(Tensor::of<float>({3}, {nan, 2, 3}), [](const Node& x) {
    return linear_recurrence(x, x.graph().constant(Tensor::of<float>({3}, {1, 1, 1})));
  });
  CHECK(result == Tensor::of<float>({3}, {1, 3, 10}));
}

}  // namespace plexaura::testing::recurrence_test
