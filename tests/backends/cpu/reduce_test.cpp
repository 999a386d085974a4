#include "core/ops/reduce.h"

#include <doctest/doctest.h>

#include "core/ops/pool2d.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::reduce_test {

namespace {

constexpr double bound = 1e-6;  // at most 32 terms are added in float; the sums of these are added in double

}  // namespace

TEST_CASE("sums and means agree with the portable kernels in double over any axes") {
  const std::vector<std::pair<Shape, std::vector<std::vector<std::int64_t>>>> cases{
      {{50000}, {{}}},
      {{40, 70}, {{}, {0}, {1}}},
      {{6, 17, 5, 3}, {{}, {0, 2, 3}, {2, 3}, {1}, {0}, {3}, {1, 3}, {0, 2}}}};
  for (const auto& [shape, axes_of] : cases)
    for (const auto& axes : axes_of)
      for (const bool keepdims : {false, true}) {
        const Agreement result = agreement(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              const Node x = graph.input("x", {dtype, shape});
              return {sum(x, {axes, keepdims}), mean(x, {axes, keepdims})};
            },
            {.low = 0, .high = 1});
        CHECK(result.worst() < bound);
      }
}

TEST_CASE("blocked values are reduced where they lie") {
  for (const std::int64_t channels : {1, 3, 16, 17, 40})
    for (const Layout& layout :
         {Layout::row_major(4), channels_last(), blocked_channels(16), blocked_channels(8)})
      for (const std::vector<std::int64_t>& axes :
           std::vector<std::vector<std::int64_t>>{{}, {0, 2, 3}, {2, 3}, {1}, {1, 2, 3}}) {
        CAPTURE(channels);
        CAPTURE(to_string(layout));
        const Agreement result = agreement_of_node(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              return {sum(graph.input("x", {dtype, {3, channels, 7, 9}}), {axes})};
            },
            {layout}, {.low = 0, .high = 1});
        CHECK(result.worst() < bound);
      }
}

TEST_CASE("a value per channel is spread over pixels") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {3, 32, 1, 1}});
    return {neg(broadcast_to(x, {3, 32, 5, 5})), broadcast_to(graph.input("row", {dtype, {4}}), {3, 4}),
            broadcast_to(graph.input("one", {dtype, {}}), {2, 3})};
  });
  CHECK(!result.uses("portable"));
  CHECK(result.worst() == 0);
}

}  // namespace plexaura::testing::reduce_test
