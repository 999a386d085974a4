#include "core/exchange/collective.h"

#include <array>
#include <atomic>
#include <doctest/doctest.h>
#include <new>
#include <thread>

#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/thread_transport.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::collective_test {
namespace {

// Returns how agree_on_error() ends on each of three ranks if the ranks in `failing` report a `Kind`, and the
// others no error.
template <class Kind>
std::array<std::string, 3> endings(std::array<bool, 3> failing) {
  std::array<std::string, 3> ends;
  ThreadRanks(3).run([&](Collective& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    try {
      const auto own = std::make_exception_ptr(Kind("broken " + std::to_string(rank)));
      agree_on_error(ranks, failing[rank] ? own : nullptr, "reading");
      ends[rank] = "fine";
    } catch (const Kind& error) {
      ends[rank] = std::string(speaks(error) ? "says " : "hears ") + error.what();
    }
  });
  return ends;
}

}  // namespace

TEST_CASE("agree_on_error: without an error all go on") {
  CHECK(endings<UserError>({false, false, false}) == std::array<std::string, 3>{"fine", "fine", "fine"});
}

TEST_CASE("agree_on_error: the lowest failed rank speaks, all end with the same kind") {
  const std::array<std::string, 3> wanted{"hears rank 1: broken 1", "says broken 1",
                                          "hears rank 1: broken 1"};
  CHECK(endings<UserError>({false, true, false}) == wanted);
  CHECK(endings<DeviceError>({false, true, true}) == wanted);
  CHECK(endings<InternalError>({false, true, true}) == wanted);
}

TEST_CASE("agree_on_error: exceptions from elsewhere get a kind") {
  std::atomic<int> device_errors = 0;
  CHECK_THROWS_AS(ThreadRanks(2).run([&](Collective& ranks) {
    try {
      agree_on_error(ranks, ranks.rank() == 0 ? std::make_exception_ptr(std::bad_alloc()) : nullptr,
                     "reading");
    } catch (const DeviceError& error) {
      ++device_errors;
      throw;
    }
  }),
                  std::bad_alloc);
  CHECK(device_errors == 1);
}

TEST_CASE("agree_on_error: a single process rethrows its own") {
  SingleProcess alone;
  CHECK_NOTHROW(agree_on_error(alone, nullptr, "reading"));
  CHECK_THROWS_WITH_AS(agree_on_error(alone, std::make_exception_ptr(UserError("broken")), "reading"),
                       "broken", UserError);
  CHECK_THROWS_WITH_AS(agree_on_error(alone, std::make_exception_ptr(42), "reading"),
                       "an exception of unknown type was thrown; throw one that derives from std::exception",
                       InternalError);
}

TEST_CASE("thread ranks: sum, broadcast, gather") {
  ThreadRanks(4).run([](Collective& ranks) {
    std::array<float, 2> values{1.0F + static_cast<float>(ranks.rank()), 0.5F};
    ranks.sum(DType::float32, reinterpret_cast<std::byte*>(values.data()), 2, "values");
    CHECK(values == std::array<float, 2>{10.0F, 2.0F});
    int number = ranks.rank();
    ranks.broadcast(reinterpret_cast<std::byte*>(&number), sizeof number, 3, "a number");
    CHECK(number == 3);
    CHECK(ranks.gather_all(std::string(static_cast<std::size_t>(ranks.rank()), 'x'), "texts") ==
          std::vector<std::string>{"", "x", "xx", "xxx"});
  });
}

TEST_CASE("thread ranks: calls that do not match, ranks that do not come") {
  const auto sum = [](Collective& ranks, std::int64_t count) {
    std::array<double, 3> values{};
    ranks.sum(DType::float64, reinterpret_cast<std::byte*>(values.data()), count, "values");
  };
  CHECK_THROWS_AS(ThreadRanks(2).run([&](Collective& ranks) { sum(ranks, 1 + ranks.rank()); }), DeviceError);
  CHECK_THROWS_AS(ThreadRanks(2).run([&](Collective& ranks) {
    if (ranks.rank() == 0) sum(ranks, 1);
  }),
                  DeviceError);
  CHECK_THROWS_WITH_AS(ThreadRanks(2).run([&](Collective& ranks) {
    if (ranks.rank() == 1) throw UserError("broken");
    sum(ranks, 1);
  }),
                       "broken", UserError);
}

TEST_CASE("a call of all ranks within a phase that ranks may leave is refused") {
  CHECK_THROWS_WITH_AS(
      ThreadRanks(2).run([](Collective& ranks) {
        together(ranks, "reading", [&] { ranks.gather_all("", "the weights"); });
      }),
      "the call 'the weights' of all ranks is made in the phase 'reading', which some ranks may have left",
      InternalError);
  ThreadNetwork network(2);
  const auto ends = plexaura::testing::endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    together(ranks, "reading", [&] { ranks.barrier("the weights"); });
  });
  for (const std::string& end : ends) CHECK(end.find("is made in the phase 'reading'") != std::string::npos);
}

TEST_CASE("behind a phase, and on another thread, ranks call each other as ever") {
  ThreadRanks(2).run([](Collective& ranks) {
    CHECK_THROWS_AS(together(ranks, "reading", [] { throw UserError("no file"); }), UserError);
    ranks.gather_all("", "the weights");
    together(ranks, "reading", [&] { std::thread([&] { ranks.gather_all("", "a sign of life"); }).join(); });
  });
}

}  // namespace plexaura::testing::collective_test
