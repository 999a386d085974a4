#include "training/ranks/strategy_state.h"

#include <doctest/doctest.h>

#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "tests/training/tiny_store.h"
#include "training/checkpoints/checkpoint.h"

namespace plexaura::testing::strategy_state_test {

TEST_CASE("a rank keeps what all have in common and what it has of its own") {
  const Tensor value = Tensor::scalar(1.0);
  const SavedStrategy saved{
      {"shared.steps", value}, {"rank0.sum", value}, {"rank1.sum", value}, {"rank10.sum", value}};
  CHECK(is_state_of(1, "shared.steps"));
  CHECK(is_state_of(1, "rank1.sum"));
  CHECK_FALSE(is_state_of(1, "rank0.sum"));
  CHECK_FALSE(is_state_of(1, "rank10.sum"));
  CHECK(strategy_state_of(saved, 1, true).size() == 2);
  CHECK(strategy_state_of(saved, 1, false).size() == 1);
}

TEST_CASE("each rank gets back what it kept itself, and what rank 0 kept for all") {
  constexpr int rank_count = 3;
  SavedStrategy saved;
  ThreadRanks(rank_count).run([&](Collective& ranks) {
    const double number = 10 + ranks.rank();
    TinyStore own(number);
    const std::vector<StrategyState> state{{"shared", Tensor::scalar(number)},
                                           {"sum", Tensor::scalar(number), true}};
    SavedStrategy all = gather_strategy_state(ranks, state, &own.store);
    if (ranks.rank() == 0) saved = std::move(all);
  });
  for (int rank = 0; rank < rank_count; ++rank) {
    CAPTURE(rank);
    const std::vector<StrategyState> state = strategy_state_of(saved, rank, true);
    REQUIRE(state.size() == 2);
    CHECK(state[0].value.to_doubles()[0] == 10);
    CHECK(state[1].value.to_doubles()[0] == 10 + rank);
    TinyStore store(10);  // rank 0, as the checkpoint has it
    take_own_store(saved, rank, store.store);
    CHECK(store.weight() == 10 + rank);
    CHECK(store.state(0) == 10.5 + rank);
  }
}

TEST_CASE("a rank reads of the strategy's state what all have and what is its own") {
  const TemporaryFolder folder;
  const Tensor value = Tensor::scalar(1.0);
  const SavedStrategy all{{"shared.a", value}, {"rank0.b", value}, {"rank1.b", value}};
  TinyStore model(1);
  save_checkpoint(folder.path(), model.store, {.strategy = all, .strategy_ranks = 2});
  for (const std::size_t rank : {0, 1, 2}) {
    const auto state = load_checkpoint(folder.path(), model.store, {}, {}, static_cast<int>(rank));
    CHECK(state->strategy_ranks == 2);
    CHECK(state->strategy.size() == (rank == 2 ? 1 : 2));
    CHECK(state->strategy.back().first == all[(rank + 1) % 3].first);
  }
}

}  // namespace plexaura::testing::strategy_state_test
