#include "distributed/servers/ranks/parameter_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <doctest/doctest.h>
#include <future>
#include <string>
#include <vector>

#include "core/exchange/rank_lost.h"
#include "distributed/communicator/group_communicator.h"
#include "distributed/servers/ranks/letters.h"
#include "distributed/servers/ranks/snapshot.h"
#include "tests/distributed/servers/ranks/moved_client.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::parameter_server_test {

namespace {

struct Survived {
  int drawn = 0;  // parts drawn by the surviving clients, before and after the death
  std::string account;
};

// Runs a server and three clients. The first client pushes two of ten parts, draws two more, and dies when
// the others have drawn the rest. Then the other two become clients of another server.
Survived outlive_a_client(ClientKind kind) {
  constexpr int rank_count = 4;
  constexpr int steps = 5;
  const AsyncServerOptions options{.push_every = 2, .client = kind};
  Survived survived;
  std::atomic<int> drawn = 0;
  std::promise<void> begun;
  std::array<std::promise<void>, 2> drained;
  const auto die = [&](MovedClient& client) {
    for (int i = 0; i < 2; ++i) {
      CHECK(client.draws(steps));
      client.step(8);
    }
    CHECK(client.draws(steps));
    begun.set_value();
    for (auto& each : drained) each.get_future().wait();
  };
  std::shared_future<void> has_begun = begun.get_future().share();
  const auto outlive = [&](MovedClient& client, std::promise<void>& all_drawn) {
    CHECK(client.draws(steps));
    has_begun.wait();
    do {
      ++drawn;
      client.step(8);
    } while (client.draws(steps));
    all_drawn.set_value();
    client.rest();
    while (!client.is_over()) {
      for (; client.draws(steps); ++drawn) client.step(8);
      client.rest();
    }
    client.draws(steps);
    FAIL("another deal was opened");
  };
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.outlive_ranks = true});
    AsyncServer before(all, options);
    try {
      if (rank == 0) {
        MovedRank(before).serve();
      } else {
        MovedClient client(before);
        if (rank == 1) {
          die(client);
          return network.bury(rank);
        }
        outlive(client, drained.at(static_cast<std::size_t>(rank - 2)));
      }
    } catch (const RankLost& loss) {
      if (!loss.is_outlived()) throw;
    }
    const auto left = all.without(std::vector{1});
    AsyncServer after(*left, options);
    after.continue_from(before);
    if (after.parts().server != nullptr) {
      MovedRank(after).serve();
      survived.account = after.account();
    } else {
      MovedClient client(after);
      client.step(8);
      client.rest();
      after.end();
    }
    left->leave(0);
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
  survived.drawn = drawn;
  return survived;
}

}  // namespace

TEST_CASE(
    "parameter server: what a client that dies has not pushed is dealt to those that rest, and then all "
    "regroup") {
  for (const ClientKind kind : {ClientKind::serial, ClientKind::threaded}) {
    const Survived survived = outlive_a_client(kind);
    CHECK(survived.drawn == 8);  // of ten parts, two were pushed
    CHECK(tells(survived.account, "     1        2        1 "));
    CHECK(tells(survived.account, " %  has died\n     2 "));
    CHECK(tells(survived.account, " %\n     3 "));
  }
}

// This happens if a client dies while the other ranks make their new communicator.
TEST_CASE("parameter server: a client of which the server before did not hear that it died has died, too") {
  std::string account;
  ThreadNetwork network(4);
  const auto ends = endings(4, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.outlive_ranks = true});
    AsyncServer before(all, {});
    if (rank == 2) return network.bury(rank);
    const auto left = all.without(std::vector{2});
    AsyncServer after(*left, {});
    after.continue_from(before);
    if (rank == 0) account = after.account();
    left->leave(0);
  });
  CHECK(ends == std::vector<std::string>(4, "fine"));
  CHECK(tells(account, " %\n     2 "));
  CHECK(tells(account, " %  has died\n     3 "));
  CHECK(tells(account, " %\n  pushes"));
}

namespace {

// Replaces a server: answers a push with what was pushed, and dies. The first client has drawn parts 0, 2 and
// 4 of ten, and has finished part 0. The second has drawn part 1, and the third part 3.
void answer_and_die(Communicator& all, ThreadNetwork& network) {
  const auto mailbox = all.mailbox("the letters of the parameter server");
  const auto pushed = mailbox->take(weights_tag, 60);
  REQUIRE(pushed);
  PartDeal deal(3);
  deal.open({.first = 0, .end = 5, .parts = 2, .parts_of_last = 2});
  for (const int client : {0, 1, 0, 2, 0}) deal.draw(client);
  deal.finish(0, 1);
  ClientTable table;
  for (const int client : {1, 2, 3}) table.add(client);
  table.add_push(1, 1, 0);
  const auto content = content_of(*pushed);
  Draft answer(content.size());
  std::ranges::copy(content, answer.content().begin());
  mailbox->post(pushed->from, weights_tag,
                answer.seal_all({.word = Word::weights, .version = 1, .number = 1}, account_of(deal, table)));
  // The client that has pushed has the answer when it draws again.
  for (int drawing = 0; drawing != pushed->from;) {
    const auto drawn = mailbox->take(deal_tag, 60);
    REQUIRE(drawn);
    drawing = drawn->from;
  }
  network.bury(server_rank);
}

void hear_of_the_death(AsyncServer& strategy, int rank) {
  MovedClient client(strategy);
  if (rank == 1) client.step(8);
  CHECK_THROWS_AS(client.draws(5), RankLost);
}

}  // namespace

TEST_CASE(
    "parameter server: where it dies, a client serves from the newest weights, and deals what is left") {
  const AsyncServerOptions options{.push_every = 1};
  std::atomic<int> drawn = 0;
  std::string account;
  ThreadNetwork network(4);
  const auto ends = endings(4, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.outlive_ranks = true});
    if (rank == server_rank) return answer_and_die(all, network);
    AsyncServer before(all, options);
    hear_of_the_death(before, rank);
    const auto left = all.without(std::vector{server_rank});
    AsyncServer after(*left, options);
    after.continue_from(before);
    if (after.parts().server != nullptr) {
      MovedRank(after).serve();
      account = after.account();
    } else {
      MovedClient client(after);
      CHECK(client.values() == Numbers{8, 8, 0});
      for (; client.draws(5); ++drawn) client.step(8);
      client.rest();
      after.end();
    }
    left->leave(0);
  });
  CHECK(ends == std::vector<std::string>(4, "fine"));
  CHECK(drawn == 9);
  CHECK(tells(account, "     1        1        1 "));
  CHECK(tells(account, " %  has taken over as server\n     2 "));
  CHECK(tells(account, " %\n     3 "));
}

}  // namespace plexaura::testing::parameter_server_test
