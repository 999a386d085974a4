#include "training/on_rank_0.h"

#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <thread>

#include "tests/support/error_text.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing {

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

}  // namespace plexaura::testing
