// What the ranks of a run tell when one error meets all of them.
#include <doctest/doctest.h>
#include <mutex>

#include "backends/registry.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"
#include "training/trainer.h"

namespace plexaura::testing {
namespace {

constexpr int kRanks = 3;

// Sums no gradients behind the first buckets.
class WithoutTail final : public SummingStrategy {
 public:
  using SummingStrategy::SummingStrategy;
  UpdateAnswer before_update(std::size_t bucket) override {
    return bucket + 1 == border_->buckets().size() ? UpdateAnswer{} : SummingStrategy::before_update(bucket);
  }
};

// The sentences that three ranks speak when they train with this strategy.
template <class S>
std::vector<std::string> spoken(TrainerOptions options) {
  std::mutex mutex;
  std::vector<std::string> sentences;
  const auto note = [&](const std::exception& error) {
    const std::lock_guard lock(mutex);
    if (speaks(error)) sentences.emplace_back(error.what());
  };
  options.batch_size = 7;
  options.bucket_bytes = 1;
  ThreadRanks(kRanks).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    S strategy(ranks);
    Trainer trainer({small_model, store, *backend, points(21), points(0), &ranks, &strategy}, options);
    try {
      trainer.run();
    } catch (const std::exception& error) {
      note(error);
    }
  });
  return sentences;
}

}  // namespace

TEST_CASE("the watch tells once what all ranks meet in the update") {
  const auto sentences = spoken<SummingStrategy>(
      {.steps = 2, .optimizer = {.weight_decay = 1e300}, .learning_rate = 1e300, .watch = true});
  REQUIRE(sentences.size() == 1);
  CAPTURE(sentences[0]);
  CHECK(sentences[0].find(" produced ") != std::string::npos);
}

TEST_CASE("a strategy that does not sum the last bucket is told so after the first step") {
  CHECK(spoken<SummingStrategy>({.steps = 2}).empty());
  CHECK(
      spoken<WithoutTail>({.steps = 2}) ==
      std::vector<std::string>{
          "the strategy leaves rank 0 with a tail of 3 samples where the step has 7: the last bucket carries "
          "loss and counts, and must be summed over all ranks like the others"});
}

}  // namespace plexaura::testing
