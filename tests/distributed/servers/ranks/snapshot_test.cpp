#include "distributed/servers/ranks/snapshot.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "distributed/communicator/group_communicator.h"
#include "distributed/servers/ranks/letters.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::snapshot_test {

namespace {

// Returns a snapshot with two bytes of weights.
Snapshot snapshot(std::int64_t number, std::byte weight, const std::string& account = "") {
  Draft draft(2);
  draft.content()[0] = weight;
  const auto letter = draft.seal_all({.word = Word::weights, .number = number}, account);
  return std::make_shared<const Letter>(Letter{0, {letter.begin(), letter.end()}});
}

// A number below 0 means no snapshot.
std::vector<Snapshot> newest_of_ranks(const std::vector<std::int64_t>& numbers) {
  std::vector<Snapshot> found(numbers.size());
  const int ranks = static_cast<int>(numbers.size());
  ThreadNetwork network(ranks);
  const auto ends = endings(ranks, [&](int rank) {
    const auto place = static_cast<std::size_t>(rank);
    GroupCommunicator all(network.transport(rank), {});
    const std::int64_t number = numbers[place];
    found[place] = newest_of(all, number < 0 ? nullptr : snapshot(number, std::byte(10 + rank)));
    all.leave(0);
  });
  CHECK(ends == std::vector<std::string>(numbers.size(), "fine"));
  return found;
}

}  // namespace

TEST_CASE("snapshot: all ranks get the newest") {
  for (const Snapshot& found : newest_of_ranks({-1, 3, 4, 4})) {
    REQUIRE(found);
    CHECK(head_of(*found).number == 4);
    CHECK(content_of(*found)[0] == std::byte(12));
  }
}

TEST_CASE("snapshot: nobody has one") {
  for (const Snapshot& found : newest_of_ranks({-1, -1})) CHECK_FALSE(found);
}

TEST_CASE("snapshot: its account is that of parts and clients") {
  PartDeal former(1);
  former.open({0, 4, 2, 2});
  former.draw(0);
  ClientTable clients;
  clients.add(3);
  PartDeal deal(2);
  ClientTable table;
  take_account(*snapshot(1, std::byte(7), account_of(former, clients)), 2, deal, table);
  CHECK(table.to_text() == clients.to_text());
  CHECK(deal.pack() == former.pack());
}

}  // namespace plexaura::testing::snapshot_test
