#include "distributed/summing/bucket_sum.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "distributed/communicator/group_communicator.h"
#include "distributed/summing/all_reduce.h"
#include "distributed/sums/sum_order.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::bucket_sum_test {

namespace {

std::vector<ParameterSpec> specs() {
  const TensorType type{DType::float32, {2}};
  return {{"first", type, ParameterRole::trainable, Initialiser::zeros()},
          {"second", type, ParameterRole::trainable, Initialiser::zeros()},
          {"running", type, ParameterRole::buffer, Initialiser::zeros()}};
}

Placement placement() {
  Placement placement{ArenaTypes::all(DType::float32), {}};
  for (const ParameterSpec& spec : specs())
    placement.append(spec.name, spec.type, spec.role, Layout::row_major(1));
  return placement;
}

std::span<float> elements(WeightsImmigration& border, std::size_t bucket) {
  const std::span<std::byte> bytes = border.gradients(bucket);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Shard i has 2^i in each element of each bucket.
void bring(WeightsImmigration& border, const ShardRange& shards) {
  for (int shard = shards.first; shard < shards.last; ++shard) {
    for (std::size_t bucket = 0; bucket < border.buckets().size(); ++bucket)
      std::ranges::fill(elements(border, bucket), static_cast<float>(1 << shard));
    if (shard + 1 < shards.last) border.keep_shard();
  }
}

}  // namespace

// The last bucket has no gradients, but changes of buffers, the loss and the counts.
TEST_CASE("bucket sum: all shards of lost ranks are in the sums of all buckets, also of the last one") {
  constexpr int rank_count = 3;
  constexpr int shards = 4;
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.shared_memory = false});
    all.bring_shards(shards);
    const auto backend = open_backend("cpu");
    ParameterStore store(specs());
    store.place(placement(), *backend);
    WeightsImmigration border(store, 1);
    REQUIRE(border.buckets().size() == 3);
    AllReduce strategy(all);
    strategy.begin(border);
    border.begin_step({.number = 1}, false);
    bring(border, divide_shards(shards, rank_count).at(static_cast<std::size_t>(rank)));
    const auto final = border.make_event();
    final->signal();
    for (std::size_t bucket = 0; bucket < border.buckets().size(); ++bucket)
      strategy.gradients_ready(bucket, *final);
    for (std::size_t bucket = 0; bucket < border.buckets().size(); ++bucket) {
      strategy.before_update(bucket);
      for (const float element : elements(border, bucket)) CHECK(element == 15);
    }
    all.leave(0);
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

}  // namespace plexaura::testing::bucket_sum_test
