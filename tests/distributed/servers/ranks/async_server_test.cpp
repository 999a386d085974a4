#include "distributed/servers/ranks/async_server.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/servers/ranks/moved_client.h"
#include "tests/distributed/strategies/iris_run.h"
#include "tests/distributed/wire/thread_transport.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::async_server_test {

namespace {

using Seconds = std::chrono::duration<double>;

using Life = std::function<void(MovedClient&)>;

// Runs servers and two clients that do the given work, each in its own thread. Returns the final account of
// the first server.
std::string account_of(const AsyncServerOptions& options, const std::array<Life, 2>& lives,
                       double deadline_seconds = 60) {
  const int rank_count = options.servers + 2;
  std::string account;
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    GroupCommunicator all(network.transport(rank), {.deadline_seconds = deadline_seconds});
    AsyncServer strategy(all, options);
    if (strategy.parts().server != nullptr) {
      MovedRank(strategy).serve();
      if (rank == 0) account = strategy.account();
    } else {
      MovedClient client(strategy);
      lives.at(static_cast<std::size_t>(rank - options.servers))(client);
      strategy.end();
    }
    all.leave(0);
  });
  CHECK(ends == std::vector<std::string>(static_cast<std::size_t>(rank_count), "fine"));
  return account;
}

// The values that the clients see. `behind`: values at two points of their steps, see the functions below. `rested`: the
// values of each client after it has rested.
struct Pushed {
  std::array<Numbers, 2> behind;
  std::array<Numbers, 2> rested;
  std::string account;
};

Pushed push_one_after_the_other(const AsyncServerOptions& options) {
  Pushed pushed;
  std::promise<void> done;
  const Life first = [&](MovedClient& client) {
    client.step(8);
    pushed.behind[0] = client.values();
    done.set_value();
    client.rest();
    pushed.rested[0] = client.values();
  };
  const Life second = [&](MovedClient& client) {
    done.get_future().wait();
    client.step(16);
    pushed.behind[1] = client.values();
    client.rest();
    pushed.rested[1] = client.values();
  };
  pushed.account = account_of(options, {first, second});
  return pushed;
}

const Life idle = [](MovedClient& client) { client.rest(); };

const Settings mixed{"distributed.strategy=async-server", "distributed.push_every=4"};
const Settings added{"distributed.strategy=downpour", "distributed.push_every=4"};

// The first client pushes at 8. It receives the answer only after the other client has pushed too, so the
// answer contains both pushes. Meanwhile it has moved on to 12. It adds what it has learned since its push,
// and keeps its own buffer until it rests.
Pushed continue_after_a_push(const ServerRule& rule, int servers = 1) {
  Pushed pushed;
  std::promise<void> went_on;
  const Life fast = [&](MovedClient& client) {
    client.step(8);
    client.step(8);
    client.step(9);
    pushed.behind[0] = client.values();
    went_on.set_value();
    client.step(12);
    pushed.behind[1] = client.values();
    client.rest();
    pushed.rested[0] = client.values();
  };
  const Life slow = [&](MovedClient& client) {
    went_on.get_future().wait();
    client.step(16);
    client.step(16);
    client.rest();
    pushed.rested[1] = client.values();
  };
  pushed.account = account_of(
      {.servers = servers, .rule = rule, .push_every = 2, .max_staleness = 0, .client = ClientKind::threaded},
      {fast, slow});
  return pushed;
}

// Step 18 is within an epoch. Each rank continues with its own state of the optimizer.
void check_resumed(const std::string& client, int servers = 1) {
  const TemporaryFolder folder;
  const auto settings =
      with(mixed, {"training.epochs=4", "training.precision=float64", "distributed.mix=1",
                   "distributed.client=" + client, fmt::format("distributed.servers={}", servers)});
  const auto saving = with(settings, {"output.dir=" + (folder / "run").string()});
  for (const int clients : {1, 3}) {
    CHECK(train_iris(servers + clients, saving, 18)[0].steps == 18);
    const auto resumed = train_iris(servers + clients, saving, {}, true);
    for (const IrisEnd& end : resumed) {
      CHECK(end.steps == 60);
      CHECK(end.weights == resumed[0].weights);
    }
    if (clients == 1) CHECK(distance(resumed[0].values, train_iris(servers + 1, settings)[0].values) < 1e-12);
    std::filesystem::remove_all(folder / "run");
  }
}

}  // namespace

// The first push (8) moves the server's weights and buffers from 0 halfway, to 4. The second push (16) is
// stale, and moves them a quarter of the way, from 4 to 7. The third number is a frozen parameter, which each
// rank keeps.
TEST_CASE("async-server: weights are mixed, stale ones less, and all have those of the server at the end") {
  const Pushed pushed = push_one_after_the_other({.rule = {.damping = 1}, .push_every = 1});
  CHECK(pushed.behind[0] == Numbers{4, 4, 8});
  CHECK(pushed.behind[1] == Numbers{7, 7, 16});
  CHECK(pushed.rested[0] == Numbers{7, 7, 8});
  CHECK(pushed.rested[1] == Numbers{7, 7, 16});
  CHECK(tells(pushed.account, "     1        1        1             0.00"));
  CHECK(tells(pushed.account, "     2        1        1             1.00"));
  CHECK(tells(pushed.account, "  pushes by staleness   0: 1  1: 1\n"));
}

// The server's buffer moves half of its way: to 4, and from there to 10.
TEST_CASE("downpour: changes are added, and buffers go a part of their way") {
  const Pushed pushed =
      push_one_after_the_other({.rule = {.push = ServerRule::Push::changes, .mix = 1}, .push_every = 1});
  CHECK(pushed.behind[0] == Numbers{8, 4, 8});
  CHECK(pushed.behind[1] == Numbers{24, 10, 16});
  CHECK(pushed.rested[0] == Numbers{24, 10, 8});
}

TEST_CASE("downpour: a client adds what it has changed since it got its weights") {
  Numbers behind;
  const Life moving = [&](MovedClient& client) {
    for (const double to : {8, 9, 9, 11}) client.step(to);
    behind = client.values();
    client.rest();
  };
  account_of({.rule = {.push = ServerRule::Push::changes, .mix = 1}, .push_every = 2}, {moving, idle});
  CHECK(behind == Numbers{11, 7.75, 11});  // the buffer moves from 4.5 by (11 - 4.5) / 2
}

TEST_CASE("async-server: a client pushes every few steps, and the rest of them when nothing more is dealt") {
  Numbers between;
  Numbers rested;
  const Life moving = [&](MovedClient& client) {
    for (int i = 0; i < 3; ++i) client.step(8);
    between = client.values();
    client.rest();
    rested = client.values();
  };
  const std::string account = account_of({.push_every = 2}, {moving, idle});
  CHECK(between == Numbers{8, 8, 8});
  CHECK(rested == Numbers{6, 6, 8});
  CHECK(tells(account, "     1        3        2             0.00"));
  CHECK(tells(account, "     2        0        0             0.00"));
}

TEST_CASE("async-server: with 'epoch' a client pushes when nothing more is dealt") {
  const Life moving = [](MovedClient& client) {
    for (int i = 0; i < 50; ++i) client.step(8);
    client.rest();
  };
  CHECK(tells(account_of({.push_every = std::nullopt}, {moving, idle}),
              "     1       50        1             0.00"));
}

// The test would hang if the first client waited for the second. The second client has already drawn its
// second part when it pauses.
TEST_CASE(
    "async-server: a client goes on without one that is slow, which draws fewer parts and pushes less") {
  std::promise<void> begun;
  std::promise<void> done;
  std::array<int, 2> drawn{};
  const Life fast = [&](MovedClient& client) {
    for (; client.draws(20); ++drawn[0]) {
      if (drawn[0] == 0) begun.get_future().wait();
      client.step(8);
    }
    done.set_value();
    client.rest();
  };
  const Life slow = [&](MovedClient& client) {
    for (; client.draws(20); ++drawn[1]) {
      if (drawn[1] == 0) {
        begun.set_value();
        done.get_future().wait();
      }
      client.step(8);
    }
    client.rest();
  };
  const std::string account = account_of({.push_every = 1}, {fast, slow});
  CHECK(drawn == std::array{38, 2});
  CHECK(tells(account, "     1       38       38             0.00"));
  CHECK(tells(account, "     2        2        2            19.00"));
}

// The server takes in the first client's second push at once, but answers it only after the other client has
// pushed. So the answer contains that push: the weights are 0, 4, 6 and 11.
TEST_CASE("async-server: a client that is too far ahead waits for the slowest") {
  std::promise<void> went_on;
  Numbers behind;
  const Life fast = [&](MovedClient& client) {
    client.step(8);
    client.step(8);
    behind = client.values();
    went_on.set_value();
    client.rest();
  };
  const Life slow = [&](MovedClient& client) {
    went_on.get_future().wait_for(Seconds(0.3));
    client.step(16);
    client.rest();
  };
  account_of({.push_every = 1, .max_staleness = 1}, {fast, slow});
  CHECK(behind == Numbers{11, 11, 8});
}

TEST_CASE("async-server: a threaded client goes on while its push travels, and keeps what it has learned") {
  const Pushed pushed = continue_after_a_push({});
  CHECK(pushed.behind[0] == Numbers{9, 9, 9});
  CHECK(pushed.behind[1] == Numbers{14, 12, 12});  // the server's weights have moved from 4 to 10
  CHECK(pushed.rested[0] == Numbers{12, 11, 12});
  CHECK(pushed.rested[1] == Numbers{12, 11, 16});
  CHECK(tells(pushed.account, "     1        4        2             0.00"));
  CHECK(tells(pushed.account, "     2        2        1             1.00"));
}

TEST_CASE("downpour: a threaded client pushes what it has changed since its last push, and nothing twice") {
  const Pushed pushed = continue_after_a_push({.push = ServerRule::Push::changes, .mix = 1});
  CHECK(pushed.behind[0] == Numbers{9, 9, 9});
  CHECK(pushed.behind[1] == Numbers{28, 12, 12});  // the server's weights have moved from 8 to 24
  CHECK(pushed.rested[0] == Numbers{28, 11, 12});
  CHECK(pushed.rested[1] == Numbers{28, 11, 16});
}

TEST_CASE("async-server: a threaded client takes in weights behind the step in which they have come") {
  constexpr int every = 10'000;
  Numbers behind;
  const Life moving = [&](MovedClient& client) {
    for (int i = 0; i < every; ++i) client.step(8);
    int steps = 0;
    for (; steps < every - 1 && client.values()[0] == 8; ++steps) {
      std::this_thread::sleep_for(Seconds(0.001));
      client.step(8);
    }
    behind = client.values();
    CHECK(steps > 0);
    client.rest();
  };
  account_of({.push_every = every, .client = ClientKind::threaded}, {moving, idle});
  CHECK(behind == Numbers{4, 8, 8});
}

TEST_CASE("async-server: nobody waits for a client that rests") {
  const Life moving = [](MovedClient& client) {
    for (int i = 0; i < 5; ++i) client.step(8);
    client.rest();
  };
  account_of({.push_every = 1, .max_staleness = 0}, {moving, idle});
}

TEST_CASE("async-server: who waits has patience as long as others write") {
  const Life slow = [](MovedClient& client) {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(Seconds(0.8));
      client.step(8);
    }
    client.rest();
  };
  account_of({.push_every = 1}, {idle, slow}, 3);
}

TEST_CASE("async-server: who waits has patience with a client that works on what it has drawn") {
  const Life slow = [](MovedClient& client) {
    while (client.draws(2)) continue;
    for (int i = 0; i < 4; ++i) {
      std::this_thread::sleep_for(Seconds(1));
      client.step(8);
    }
    client.rest();
  };
  account_of({.push_every = std::nullopt}, {idle, slow}, 2.5);
}

// After the deal, the first client waits longer than the deal has taken.
TEST_CASE("async-server: a client that waits outside a deal is not idle") {
  const Life waiting = [](MovedClient& client) {
    while (client.draws(0)) continue;
    client.rest();
    client.rest();
  };
  const Life late = [](MovedClient& client) {
    client.rest();
    std::this_thread::sleep_for(Seconds(0.3));
    client.rest();
  };
  const std::string account = account_of({}, {waiting, late});
  const std::size_t row = account.find("     1        0        0             0.00 ");
  REQUIRE(row != std::string::npos);
  CHECK(std::stod(account.substr(row + 41)) <= 100);
  CHECK(tells(account, "     2        0        0             0.00  0.0 %\n"));
}

TEST_CASE(
    "async-server, downpour: learn the flowers as one rank does, and all clients end with the same weights" *
    doctest::skip(sanitized)) {
  const double alone = train_iris(1, {})[0].accuracy;
  const auto check = [&](const Settings& settings, int clients, int servers = 1) {
    const auto ends = train_iris(servers + clients, settings);
    REQUIRE(std::ssize(ends) == clients);
    for (const IrisEnd& end : ends) {
      CHECK(end.weights == ends[0].weights);
      CHECK(end.steps == 900);
    }
    CHECK(ends[0].accuracy >= alone - 0.04);  // 0.04 is a little more than one of 30 flowers
  };
  for (const auto& settings : {mixed, added}) {
    check(with(settings, {"distributed.client=threaded"}), 3);
    check(with(settings, {"distributed.servers=2"}), 2, 2);
  }
  check(mixed, 1);
  check(mixed, 4);
  check(added, 2);
}

TEST_CASE(
    "async-server: one client that draws all is one rank, where the server takes its weights as they are") {
  const Settings brief{few_epochs, "training.precision=float64"};
  const auto alone = train_iris(1, brief);
  for (const char* client : {"serial", "threaded"})
    for (const char* every : {"1", "4", "epoch"}) {
      const auto served = train_iris(
          2, with(brief, {mixed[0], "distributed.mix=1", fmt::format("distributed.client={}", client),
                          fmt::format("distributed.push_every={}", every)}));
      CHECK(distance(served[0].values, alone[0].values) < 1e-12);
    }
}

TEST_CASE("async-server: a run goes on from its checkpoint, and one client as if it had never stopped") {
  check_resumed("serial");
}

TEST_CASE("async-server: a run of threaded clients likewise") { check_resumed("threaded"); }

TEST_CASE("async-server: a run with two servers likewise") { check_resumed("serial", 2); }

// Three cache lines are shared, so with four servers one has nothing.
TEST_CASE("async-server, downpour: servers of a shard each take in a push as one server takes in all of it") {
  for (const int servers : {2, 3, 4}) {
    CAPTURE(servers);
    const Pushed mixed =
        push_one_after_the_other({.servers = servers, .rule = {.damping = 1}, .push_every = 1});
    CHECK(mixed.behind[1] == Numbers{7, 7, 16});
    CHECK(mixed.rested[0] == Numbers{7, 7, 8});
    CHECK(tells(mixed.account, fmt::format("     {}        1        1             0.00", servers)));
    CHECK(tells(mixed.account, "  pushes by staleness   0: 1  1: 1\n"));
    const ServerRule adding{.push = ServerRule::Push::changes, .mix = 1};
    const Pushed added = push_one_after_the_other({.servers = servers, .rule = adding, .push_every = 1});
    CHECK(added.behind[1] == Numbers{24, 10, 16});
    CHECK(added.rested[0] == Numbers{24, 10, 8});
  }
}

TEST_CASE("async-server: a threaded client keeps what it has learned since it pushed to several servers") {
  for (const int servers : {2, 3}) {
    const Pushed pushed = continue_after_a_push({}, servers);
    CHECK(pushed.behind[0] == Numbers{9, 9, 9});
    CHECK(pushed.behind[1] == Numbers{14, 12, 12});
    CHECK(pushed.rested[0] == Numbers{12, 11, 12});
    CHECK(pushed.rested[1] == Numbers{12, 11, 16});
  }
}

// The client writes to the first server with each draw.
TEST_CASE("async-server: each of several servers hears of a client that draws and does not push") {
  const Life drawing = [](MovedClient& client) {
    while (client.draws(4)) {
      std::this_thread::sleep_for(Seconds(0.5));
      client.step(8);
    }
    client.rest();
  };
  account_of({.servers = 2, .push_every = std::nullopt}, {idle, drawing}, 2.5);
}

TEST_CASE("async-server, downpour: one client of several servers has the bits that it has with one") {
  for (const char* strategy : {"async-server", "downpour"}) {
    const Settings brief{"training.epochs=3", fmt::format("distributed.strategy={}", strategy),
                         "distributed.push_every=4"};
    const std::string one = train_iris(2, brief)[0].weights;
    for (const int servers : sanitized ? std::vector{2} : std::vector{2, 5})
      CHECK(
          train_iris(servers + 1, with(brief, {fmt::format("distributed.servers={}", servers)}))[0].weights ==
          one);
  }
}

}  // namespace plexaura::testing::async_server_test
