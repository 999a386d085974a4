#include "core/ops/all_reduce.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/graph/print.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::all_reduce_test {

namespace {

// One of three ranks; all have the same values.
class OfThree final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 3; }
  void sum(DType, std::byte* data, std::int64_t count, std::string_view) override {
    auto* values = reinterpret_cast<double*>(data);
    for (std::int64_t i = 0; i < count; ++i) values[i] *= 3;
  }
  void broadcast(std::byte*, std::size_t, int, std::string_view) override {}
  std::vector<std::string> gather_all(const std::string& mine, std::string_view) override {
    return {mine, mine, mine};
  }
};

}  // namespace

TEST_CASE("all_reduce_sum adds up over ranks, and so does its gradient") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2}});
  const Node y = all_reduce_sum(x);
  const Node grad = gradients(sum(y), {x})[0];
  const std::vector<ProgramOutput> outputs{{y}, {grad}};
  OfThree collective;
  VM vm(compile(graph, outputs, test_backend()), test_backend(), {.collective = &collective});
  const Tensor values = Tensor::of<double>({2}, {1, -2});
  vm.run({{"x", values}});
  CHECK(vm.output(0).to_doubles() == std::vector<double>{3, -6});
  CHECK(vm.output(1).to_doubles() == std::vector<double>{3, 3});
}

TEST_CASE("all_reduce_sum refuses what no message carries") {
  Graph graph;
  const Node x = graph.input("x", {DType::bfloat16, {2}});
  CHECK(user_error([&] { all_reduce_sum(x); }).find("use cast()") != std::string::npos);
  for (const DType dtype : {DType::float64, DType::float32, DType::int64})
    CHECK(all_reduce_sum(cast(x, dtype)).dtype() == dtype);
}

}  // namespace plexaura::testing::all_reduce_test
