#include "core/ops/shared_dropout.h"

#include <doctest/doctest.h>

#include "core/graph/graph.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::shared_dropout_test {

namespace {

constexpr StepBlock block_of_cases{.step = 3, .seed = 5, .first_sample = 7};

// One draw for each element of the first `drawn` axes, by the first dropout of a graph.
Tensor expected_dropout(const Tensor& x, std::size_t drawn, const DropoutOptions& options) {
  reference::Index extents(x.shape().extents().size(), 1);
  for (std::size_t axis = 0; axis < drawn; ++axis) extents[axis] = x.shape().extents()[axis];
  const Tensor mask = reference::dropout_mask(Shape(extents), options, block_of_cases, Graph().next_stream());
  Tensor y = x;
  reference::for_each_index(x.shape(), [&](const reference::Index& index) {
    const double keep = reference::at(mask, reference::before_broadcasting(mask.shape(), index));
    reference::at(y, index) *= keep / (1 - options.p);
  });
  return y;
}

OpCase dropped(const std::string& name, Node (*build)(Operand, DropoutOptions), std::size_t drawn,
               Shape shape, DropoutOptions options) {
  OpCase op_case{name,
                 "dropout",
                 [=](Graph&, auto x) { return std::vector{build(x[0], options)}; },
                 {{std::move(shape)}},
                 [=](auto x) { return std::vector{expected_dropout(x[0], drawn, options)}; }};
  op_case.block = block_of_cases;
  return op_case;
}

const Cases cases({
    dropped("dropout1d", dropout1d, 2, {3, 4, 3}, {.p = 0.5}),
    dropped("dropout2d", dropout2d, 2, {4, 3, 2, 2}, {.p = 0.3}),
    dropped("dropout2d, the same for all ranks", dropout2d, 2, {4, 3, 2, 2}, {.p = 0.3, .batch = false}),
    dropped("dropout3d", dropout3d, 2, {2, 5, 2, 1, 2}, {.p = 0.5}),
    dropped("drop_path", drop_path, 1, {9, 2, 3}, {.p = 0.4}),
});

Node x_of(Graph& graph, Shape shape) { return graph.input("x", {DType::float32, std::move(shape)}); }

const WrongCases wrong({
    {"dropout2d of rows",
     "dropout2d",
     [](Graph& graph) {
       dropout2d(x_of(graph, {2, 3}));
     },
     {"needs the axes N, C, H and W"}},
    {"drop_path of everything",
     "dropout",
     [](Graph& graph) {
       drop_path(x_of(graph, {2, 3}), {.p = 1});
     },
     {"less than 1", "not 1"}},
    {"drop_path of a scalar",
     "drop_path",
     [](Graph& graph) { drop_path(x_of(graph, {})); },
     {"needs an axis of samples"}},
    {"drop_path of integers",
     "drop_path",
     [](Graph& graph) {
       drop_path(graph.input("x", {DType::int32, {2, 3}}));
     },
     {"cast()"}},
});

}  // namespace

TEST_CASE("shared dropout: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("shared dropout: what it refuses") { check_all(wrong); }

TEST_CASE("shared dropout returns x itself in inference and without a probability") {
  Graph graph;
  const Node x = x_of(graph, {2, 3});
  CHECK(same_value(drop_path(x, {.p = 0}), x));
  Graph inference(Mode::inference);
  const Node y = x_of(inference, {1, 2, 3, 4});
  CHECK(same_value(dropout2d(y), y));
}

}  // namespace plexaura::testing::shared_dropout_test
