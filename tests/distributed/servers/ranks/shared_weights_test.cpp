#include "distributed/servers/ranks/shared_weights.h"

#include <doctest/doctest.h>
#include <vector>

#include "backends/registry.h"
#include "core/params/parameter_store.h"

namespace plexaura::testing::shared_weights_test {

namespace {

std::vector<ParameterSpec> specs() {
  const auto of = [](const char* name, std::int64_t elements, ParameterRole role) {
    return ParameterSpec{name, {DType::float64, {elements}}, role, Initialiser::zeros()};
  };
  return {of("weight", 100, ParameterRole::trainable), of("running", 20, ParameterRole::buffer),
          of("frozen", 50, ParameterRole::frozen)};
}

}  // namespace

TEST_CASE("shared weights: have elements of two types, and others are a mistake") {
  std::size_t bytes = 0;
  const auto note = [&](auto element) { bytes = sizeof element; };
  with_elements(DType::float64, note);
  CHECK(bytes == sizeof(double));
  with_elements(DType::float32, note);
  CHECK(bytes == sizeof(float));
  CHECK_THROWS_WITH_AS(with_elements(DType::int64, note),
                       "ranks exchange weights of float64 or float32, not int64: cast them first", UserError);
}

// With cache lines of 8 elements, 13 elements of the trainable parameter and 3 of the buffer are shared.
TEST_CASE(
    "shared weights: shards follow each other, are of about the same size, and know where buffers begin") {
  const auto backend = open_backend("cpu");
  ParameterStore store(specs());
  Placement placement{ArenaTypes::all(DType::float64), {}};
  for (const ParameterSpec& spec : store.specs())
    placement.append(spec.name, spec.type, spec.role, Layout::row_major(1));
  store.place(placement, *backend);
  WeightsImmigration border(store, 1 << 20);
  const SharedWeights weights(border);
  const auto check = [&](int server, int servers, std::size_t begin, std::size_t lines,
                         std::size_t trainables) {
    const Shard shard = weights.shard(server, servers);
    CHECK(shard.begin == 64 * begin);
    CHECK(shard.bytes == 64 * lines);
    CHECK(shard.trainables == trainables);
    CHECK(shard.of(weights.fetch()).data() == weights.fetch().data() + shard.begin);
  };
  check(0, 1, 0, 16, 104);
  check(0, 3, 0, 5, 40);
  check(1, 3, 5, 5, 40);
  check(2, 3, 10, 6, 24);
  check(7, 8, 14, 2, 0);
  check(0, 17, 0, 0, 0);
}

}  // namespace plexaura::testing::shared_weights_test
