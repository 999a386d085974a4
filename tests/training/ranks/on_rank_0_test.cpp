#include "training/ranks/on_rank_0.h"

#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <thread>

#include "core/base/clock.h"
#include "core/base/events.h"
#include "tests/support/error_text.h"
#include "tests/support/forwarding_collective.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::on_rank_0_test {

namespace {

// Sends an event for each sum, like ranks that are processes do.
class Telling final : public ForwardingCollective {
 public:
  using ForwardingCollective::ForwardingCollective;
  void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) override {
    const EventSpan span(EventKind::wait, what);
    ForwardingCollective::sum(dtype, data, count, what);
  }
};

// Counts the waits of all threads for its lifetime.
class CountedWaits final : public EventSink {
 public:
  CountedWaits() { send_events_to(this); }
  CountedWaits(const CountedWaits&) = delete;
  CountedWaits& operator=(const CountedWaits&) = delete;
  ~CountedWaits() override { send_events_to(nullptr); }
  void event(EventKind kind, std::int64_t, std::string_view) noexcept override {
    if (kind == EventKind::wait) ++count;
  }
  std::atomic<int> count = 0;
};

}  // namespace

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

TEST_CASE("work that makes progress may take long, and so may a wait for the progress of others") {
  WorkProgress waiting(0.5);
  waiting.await_others();
  ThreadRanks(2, 5).run([&](Collective& ranks) {
    WorkProgress going(0.5);
    const auto work = [&] {
      for (int i = 0; i < 10; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        going.made();
      }
    };
    on_some_ranks(ranks, true, "evaluating", work, ranks.rank() == 0 ? &going : &waiting);
  });
}

TEST_CASE(
    "a rank whose work makes no progress is taken for lost after a deadline, and one that goes on in time is "
    "not") {
  const auto end_of = [](double patience, double pause) {
    std::atomic<bool> is_lost = false;
    return device_error([&] {
      ThreadRanks(2, 4).run([&](Collective& ranks) {
        WorkProgress progress(patience);
        const auto hang = [&] {
          const double begin = seconds_now();
          while (ranks.rank() == 1 && !is_lost && seconds_now() - begin < pause)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        };
        try {
          on_some_ranks(ranks, true, "evaluating", hang, &progress);
        } catch (const DeviceError&) {
          is_lost = true;
          throw;
        }
      });
    });
  };
  CHECK(end_of(0.5, 60).starts_with("rank 1 did not come to 'evaluating' "));
  CHECK(end_of(0.5, 1.5).empty());
}

TEST_CASE("those at work and those who wait for them tell few events") {
  CountedWaits waits;
  ThreadRanks(2).run([](Collective& collective) {
    Telling ranks(collective);
    on_rank_0(ranks, "a save", [] { std::this_thread::sleep_for(std::chrono::milliseconds(1200)); });
  });
  CHECK(waits.count == 2);  // one for each rank, when its own work is done
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
