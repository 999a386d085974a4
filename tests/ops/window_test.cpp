#include "core/ops/window.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/graph/graph.h"
#include "core/ops/pool2d.h"

using namespace plexaura;

TEST_CASE("a window reaches over one element or more, and moves, along both axes") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 1, 4, 4}});
  const auto refuses = [&](Size2d kernel, Size2d stride, const char* words) {
    CHECK_THROWS_WITH_AS(avg_pool2d(x, {.kernel = kernel, .stride = stride}), doctest::Contains(words),
                         UserError);
  };
  CHECK_NOTHROW(avg_pool2d(x, {.kernel = {1, 1}, .stride = Size2d{1, 1}}));
  refuses({0, 1}, {1, 1}, "the kernel must be 1 or more (here 0 x 1)");
  refuses({1, 0}, {1, 1}, "the kernel must be 1 or more (here 1 x 0)");
  refuses({1, 1}, {0, 1}, "the stride must be 1 or more (here 0 x 1)");
  refuses({1, 1}, {1, 0}, "the stride must be 1 or more (here 1 x 0)");
}
