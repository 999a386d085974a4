#include "distributed/exchange/exchange_thread.h"

#include <atomic>
#include <doctest/doctest.h>
#include <future>
#include <vector>

#include "core/base/error.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::exchange_thread_test {

TEST_CASE("exchange thread: buckets are exchanged in order, step by step, while others are begun") {
  std::vector<std::size_t> exchanged;
  std::promise<void> all_begun;
  std::shared_future<void> begun = all_begun.get_future().share();
  ExchangeThread thread([&](std::size_t bucket) {
    begun.wait();
    exchanged.push_back(bucket);
  });
  for (int step = 0; step < 3; ++step) {
    for (std::size_t bucket = 0; bucket < 3; ++bucket) thread.begin(bucket);
    if (step == 0) {
      CHECK_FALSE(thread.is_idle());
      all_begun.set_value();
    }
    for (std::size_t bucket = 0; bucket < 3; ++bucket) thread.await(bucket);
    CHECK(thread.is_idle());
  }
  CHECK(exchanged == std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("exchange thread: buckets are exchanged in the order that is asked for, each when it has begun") {
  std::vector<std::size_t> exchanged;
  std::vector<std::size_t> begun_at;
  std::promise<void> all_begun;
  std::shared_future<void> begun = all_begun.get_future().share();
  ExchangeThread thread([&](std::size_t bucket) { exchanged.push_back(bucket); },
                        [&](std::size_t place, std::size_t of) {
                          if (place > 0) begun.wait();
                          begun_at.push_back(of);
                          return std::vector<std::size_t>{1, 2, 0}[place];
                        });
  for (int step = 0; step < 2; ++step) {
    thread.begin(0);
    CHECK_FALSE(thread.is_idle());
    thread.begin(1);
    thread.await(1);
    thread.begin(2);
    if (step == 0) all_begun.set_value();
    thread.await(0);
    thread.await(2);
  }
  CHECK(exchanged == std::vector<std::size_t>{1, 2, 0, 1, 2, 0});
  CHECK(begun_at.front() >= 1);
}

TEST_CASE("exchange thread: what fails is told for its bucket and all behind it, and nothing follows") {
  std::atomic<int> calls = 0;
  ExchangeThread thread([&](std::size_t bucket) {
    ++calls;
    if (bucket == 1) throw UserError("lost");
  });
  for (std::size_t bucket = 0; bucket < 3; ++bucket) thread.begin(bucket);
  CHECK(user_error([&] { thread.await(2); }) == "lost");
  CHECK(user_error([&] { thread.await(1); }) == "lost");
  CHECK(calls == 2);
  CHECK(thread.is_idle());
}

TEST_CASE("exchange thread: what was not begun when it is stopped is never exchanged") {
  std::atomic<int> calls = 0;
  std::promise<void> first_has_begun;
  std::promise<void> may_end;
  {
    ExchangeThread thread([&, end = may_end.get_future().share()](std::size_t) {
      if (calls++ == 0) first_has_begun.set_value();
      end.wait();
    });
    thread.begin(0);
    thread.begin(1);
    first_has_begun.get_future().wait();
    thread.stop();
    CHECK_FALSE(thread.is_idle());
    may_end.set_value();
  }
  CHECK(calls == 1);
}

TEST_CASE("exchange thread: buckets that are handed over out of order are a fault of ours") {
  ExchangeThread thread([](std::size_t) {});
  CHECK_THROWS_AS(thread.begin(1), InternalError);
}

}  // namespace plexaura::testing::exchange_thread_test
