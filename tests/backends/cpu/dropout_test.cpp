#include "core/ops/dropout.h"

#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/cases.h"

namespace plexaura::testing::dropout_test {

TEST_CASE("dropout and its gradient give the bits of the portable kernels, wherever the batch begins") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const Shape& shape : {Shape{1, 3}, Shape{7, 53}, Shape{2, 5, 17, 19}, Shape{64, 64}})
    for (const std::int64_t first_sample : {0, 1, 2, 3}) {
      Graph graph;
      const Node x = graph.input("x", {DType::float32, shape});
      const Node y = dropout(x, {.p = 0.3});
      const std::vector<Node> wanted{y, output_of(y, 1), gradients(sum(y * x), {x})[0]};
      const StepBlock block{.step = 2, .seed = 5, .first_sample = first_sample};
      const std::vector<Tensor> inputs{drawn(x.type(), "x")};
      CHECK(Runner(graph, wanted, *fast)(inputs, block) == Runner(graph, wanted, *portable)(inputs, block));
    }
}

TEST_CASE("no dropout is left to the portable kernels") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {3, 5}});
    return {dropout_grad(x, output_of(dropout(x, {.p = 0.3}), 1), 0.3)};
  });
  CHECK_FALSE(result.uses("portable"));
  CHECK(result.worst() < 1e-7);
}

}  // namespace plexaura::testing::dropout_test
