#include "training/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "tests/training/data/data_support.h"

namespace plexaura::testing::sampler_test {

namespace {

// Returns how often each position of an epoch is assigned to some rank.
std::vector<int> count_visits(const BatchPlan& plan) {
  std::vector<int> visits(static_cast<std::size_t>(plan.samples));
  for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step)
    for (std::int64_t rank = 0; rank < plan.ranks; ++rank)
      for (std::int64_t micro = 0; micro < plan.micro_batches; ++micro) {
        const Slice slice = plan.micro_batch(step, rank, micro);
        for (std::int64_t i = 0; i < slice.count; ++i) ++visits[static_cast<std::size_t>(slice.first + i)];
      }
  return visits;
}

}  // namespace

TEST_CASE("every sample of an epoch is visited once, whatever the sizes") {
  for (const std::int64_t samples : {1, 2, 7, 64, 150, 1001})
    for (const std::int64_t batch : {1, 3, 4, 64, 2000})
      for (const std::int64_t ranks : {1, 2, 3, 8})
        for (const std::int64_t micro : {1, 2, 5}) {
          CAPTURE(samples);
          CAPTURE(batch);
          CAPTURE(ranks);
          CAPTURE(micro);
          const auto visits = count_visits({samples, batch, ranks, micro});
          CHECK(std::ranges::all_of(visits, [](int count) { return count == 1; }));
        }
}

TEST_CASE("a batch is split as evenly as possible, the first ranks taking more") {
  const BatchPlan plan{10, 4, 3, 1};
  CHECK(plan.steps_per_epoch() == 3);
  CHECK(plan.rank_share(1, 0) == Slice{4, 2});
  CHECK(plan.rank_share(1, 1) == Slice{6, 1});
  CHECK(plan.rank_share(1, 2) == Slice{7, 1});
  CHECK(plan.global_batch(2) == Slice{8, 2});
  CHECK(plan.rank_share(2, 2) == Slice{10, 0});
}

TEST_CASE("the sizes of micro-batches are all those that occur") {
  for (const std::int64_t samples : {1, 7, 64, 150})
    for (const std::int64_t batch : {1, 4, 33, 200})
      for (const std::int64_t ranks : {1, 3, 8})
        for (const std::int64_t micro : {1, 2, 5}) {
          const BatchPlan plan{samples, batch, ranks, micro};
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            std::vector<std::int64_t> sizes;
            for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step)
              for (std::int64_t m = 0; m < micro; ++m) sizes.push_back(plan.micro_batch(step, rank, m).count);
            std::ranges::sort(sizes);
            sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
            CHECK(plan.micro_batch_sizes(rank) == sizes);
          }
        }
}

TEST_CASE("the order of an epoch is a permutation that depends on seed and epoch alone") {
  const auto order = epoch_order(1000, true, 7, 3);
  auto sorted = order;
  std::ranges::sort(sorted);
  CHECK(sorted == epoch_order(1000, false, 7, 3));
  CHECK(order != sorted);
  CHECK(order == epoch_order(1000, true, 7, 3));
  CHECK(order != epoch_order(1000, true, 7, 4));
  CHECK(order != epoch_order(1000, true, 8, 3));
  CHECK(epoch_order(1, true, 0, 0) == std::vector<std::int64_t>{0});
  CHECK(epoch_order(0, true, 0, 0).empty());
}

TEST_CASE("the order of an epoch is the same on every platform and in every version") {
  CHECK(epoch_order(8, true, 1, 0) == std::vector<std::int64_t>{5, 0, 4, 1, 2, 6, 7, 3});
}

TEST_CASE("each sample comes to each place about equally often") {
  constexpr int epochs = 6000;
  int counts[4][4] = {};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto order = epoch_order(4, true, 5, epoch);
    for (std::size_t place = 0; place < 4; ++place) ++counts[place][order[place]];
  }
  for (const auto& row : counts)
    for (const int count : row) CHECK(std::abs(count - epochs / 4) < 170);  // 5 standard deviations
}

TEST_CASE("weighted samples come in proportion to their weights, with replacement") {
  const std::vector<double> weights{1, 0, 3, 4};
  std::vector<int> counts(4);
  constexpr int epochs = 4000;
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (const std::int64_t index : weighted_order(weights, 5, epoch))
      ++counts[static_cast<std::size_t>(index)];
  CHECK(counts[1] == 0);
  for (const std::size_t i : {0, 2, 3})
    CHECK(std::abs(counts[i] - epochs * weights[i] / 2) < 5 * std::sqrt(epochs * weights[i] / 2));
  CHECK(weighted_order(weights, 5, 1) == weighted_order(weights, 5, 1));
  CHECK(weighted_order(weights, 5, 1) != weighted_order(weights, 5, 2));
  CHECK(weighted_order(weights, 5, 1) != weighted_order(weights, 6, 1));
  CHECK(weighted_order(std::vector<double>{0, 2, 0}, 1, 0) == std::vector<std::int64_t>{1, 1, 1});
}

TEST_CASE("weights of classes are divided among their samples") {
  const std::vector<std::int64_t> labels{0, 1, 1, 0, 1, 1};
  CHECK(sample_weights(labels, std::vector<double>{1, 2}) ==
        std::vector<double>{0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  CHECK(sample_weights(labels, std::vector<double>{1, 1, 0}) ==
        std::vector<double>{0.5, 0.25, 0.25, 0.5, 0.25, 0.25});
  CHECK(user_error([&] {
          sample_weights(labels, std::vector<double>{1, 1, 1});
        }) == "class 2 is to be drawn and has no sample; give it the weight 0, or samples");
  CHECK(user_error([&] {
          weighted_order(std::vector<double>{1, -1}, 0, 0);
        }) == "the weight of sample 1 is -1; give finite numbers of 0 or more");
  CHECK(user_error([&] {
          weighted_order(std::vector<double>{0, 0}, 0, 0);
        }).starts_with("the weights of the samples sum to 0;"));
}

TEST_CASE("a plan names the number that is not positive") {
  CHECK(user_error([] {
          BatchPlan{10, 0, 1, 1}.check();
        }).find("samples in a batch is 0") != std::string::npos);
  CHECK_THROWS_AS((BatchPlan{10, 1, 1, -2}.check()), UserError);
  CHECK_NOTHROW(BatchPlan{10, 1, 1, 1024}.check());
  CHECK_THROWS_AS((BatchPlan{10, 1, 1, 1025}.check()), UserError);
  CHECK(user_error([] {
          epoch_order(std::int64_t{1} << 62, false, 1, 0);
        }).starts_with("the order of 4611686018427387904 samples"));
}

}  // namespace plexaura::testing::sampler_test
