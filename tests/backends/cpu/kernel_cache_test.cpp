#include "backends/cpu/kernel_cache.h"

#include <doctest/doctest.h>

#include "core/ops/unary.h"

namespace plexaura::testing::kernel_cache_test {

namespace {

class Nothing final : public Kernel {
 public:
  std::unique_ptr<Launch> bind(const Binding&) const override { return nullptr; }
};

// Returns a kernel of exp for `extent` numbers from the cache. Increments `made` if a new one was made.
std::shared_ptr<const Kernel> kernel_of(KernelCache& cache, std::int64_t extent, int& made) {
  Graph graph;
  const Node y = exp(graph.input("x", {DType::float32, {extent}}));
  const Region region{.kind = "exp", .nodes = {y.id()}, .inputs = {{0, 0}}, .outputs = {{y.id(), 0}}};
  Candidate candidate;
  candidate.implementation = "some";
  candidate.inputs = candidate.outputs = {Layout::row_major(1)};
  return cache.get({graph, region, {Layout::row_major(1)}, {true}}, candidate, [&] {
    ++made;
    return std::make_shared<const Nothing>();
  });
}

}  // namespace

TEST_CASE("kernels of one description are one kernel as long as somebody uses it") {
  KernelCache cache;
  int made = 0;
  auto first = kernel_of(cache, 5, made);
  CHECK(kernel_of(cache, 5, made) == first);
  CHECK(kernel_of(cache, 6, made) != first);
  CHECK(made == 2);
  first.reset();
  kernel_of(cache, 5, made);
  CHECK(made == 3);
}

TEST_CASE("what nobody uses does not fill the cache") {
  KernelCache cache;
  int made = 0;
  const auto kept = kernel_of(cache, 1, made);
  for (std::int64_t extent = 2; extent < 1000; ++extent) kernel_of(cache, extent, made);
  CHECK(cache.size() < 100);
  CHECK(kernel_of(cache, 1, made) == kept);
}

}  // namespace plexaura::testing::kernel_cache_test
