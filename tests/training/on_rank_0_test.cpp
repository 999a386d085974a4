#include "training/on_rank_0.h"

#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <thread>

#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::on_rank_0_test {

TEST_CASE("work of rank 0 may take longer than ranks wait for each other, and is done when they go on") {
  std::atomic<bool> done = false;
  ThreadRanks(3, 2).run([&](Collective& ranks) {
    on_rank_0(ranks, "a long save", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3500));
      done = true;
    });
    CHECK(done);
  });
}

TEST_CASE("some ranks work, each on the thread that calls, while the others wait") {
  std::atomic<int> done = 0;
  ThreadRanks(3, 2).run([&](Collective& ranks) {
    const std::thread::id caller = std::this_thread::get_id();
    on_some_ranks(ranks, ranks.rank() != 1, "measuring", [&] {
      CHECK(std::this_thread::get_id() == caller);
      std::this_thread::sleep_for(std::chrono::milliseconds(ranks.rank() == 0 ? 100 : 3500));
      ++done;
    });
    CHECK(done == 2);
  });
  SingleProcess alone;
  on_some_ranks(alone, false, "measuring", [&] { ++done; });
  CHECK(done == 2);
}

TEST_CASE("what fails on one of several ranks at work ends all") {
  std::atomic<int> ended = 0;
  const std::string text = user_error([&] {
    ThreadRanks(3).run([&](Collective& collective) {
      try {
        on_some_ranks(collective, collective.rank() > 0, "measuring", [&] {
          if (collective.rank() == 2) throw UserError("no kernel runs");
        });
      } catch (const UserError&) {
        ++ended;
        throw;
      }
    });
  });
  CHECK(text == "no kernel runs");
  CHECK(ended == 3);
}

TEST_CASE("what fails on rank 0 ends all ranks") {
  for (const int ranks : {1, 3}) {
    std::atomic<int> ended = 0;
    const std::string text = user_error([&] {
      ThreadRanks(ranks).run([&](Collective& collective) {
        try {
          on_rank_0(collective, "a save", [] { throw UserError("the disk is full"); });
        } catch (const UserError&) {
          ++ended;
          throw;
        }
      });
    });
    CHECK(text == "the disk is full");
    CHECK(ended == ranks);
  }
}

}  // namespace plexaura::testing::on_rank_0_test
