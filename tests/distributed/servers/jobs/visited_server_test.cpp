#include "distributed/servers/jobs/visited_server.h"

#include <chrono>
#include <doctest/doctest.h>
#include <future>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/servers/jobs/visitor.h"
#include "tests/distributed/servers/jobs/served.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::visited_server_test {

TEST_CASE("visited server: takes in pushes of those that join and leave, and tells how stale they were") {
  Served served({.rule = {.mix = 0.5}, .samples = {{"data.class 0", "setosa"}}});
  served.start();
  Visitor first(served.file(), 60);
  CHECK(first.samples().at("data.class 0") == "setosa");
  CHECK(floats_of(first.join(Served::facts(), 16)) == Floats{0, 0, 0, 9});
  CHECK(Served::push(first, {4, 8, 2}) == Floats{2, 4, 1});
  {
    Visitor second(served.file(), 60);
    CHECK(floats_of(second.join(Served::facts(), 16)) == Floats{2, 4, 1, 9});
    CHECK(second.number() == 2);
    CHECK(Served::push(first, {2, 4, 1}) == Floats{2, 4, 1});
    CHECK(Served::push(second, {4, 4, 1}, 3) == Floats{3, 4, 1});
    CHECK(Served::push(second, {100, 100, 100}, 0) == Floats{3, 4, 1});
    second.leave();
  }
  first.leave();
  CHECK(served.end());
  CHECK(served.server().version() == 3);
  CHECK(floats_of(served.server().weights()) == Floats{3, 4, 1, 9});
  const std::string table = served.server().table().to_text("client");
  CHECK(table.find("       1        2        2             0.00") != std::string::npos);
  CHECK(table.find("       2        3        1             1.00") != std::string::npos);
  // The server may read both letters at once, and then the first client's letter first.
  CHECK(served.said().find("client 1 has left; clients that are there: ") != std::string::npos);
  CHECK(served.said().ends_with(" has left; clients that are there: 0\n"));
}

TEST_CASE("visited server: buffers go a part of their way, of as many as there are clients") {
  Served served({.rule = {.push = ServerRule::Push::changes, .mix = 1}, .clients = 2});
  served.start();
  Visitor first(served.file(), 60);
  first.join(Served::facts(), 16);
  CHECK(Served::push(first, {1, 2, 4}) == Floats{1, 2, 4});
  Visitor second(served.file(), 60);
  second.join(Served::facts(), 16);
  CHECK(Served::push(first, {1, 2, 8}) == Floats{2, 4, 6});
  first.leave();
  second.leave();
  CHECK(served.end());
}

TEST_CASE("visited server: refuses who differs and what is not finite, and the others go on") {
  Served served({.clients = 1});
  served.start();
  Visitor good(served.file(), 60);
  good.join(Served::facts(), 16);
  Visitor other(served.file(), 60);
  const std::string difference =
      "the server and this client differ in 'model': the server has 'a', and the client 'b'; start both with "
      "the "
      "same";
  CHECK(user_error([&] { other.join(Served::facts("b"), 16); }) == difference);
  const float infinite = std::numeric_limits<float>::infinity();
  Visitor diverged(served.file(), 60);
  diverged.join(Served::facts(), 16);
  CHECK(user_error([&] {
          Served::push(diverged, {0, infinite, 0});
        }) ==
        "the server takes in no weights that are not finite: training diverged; lower the learning rate");
  CHECK(Served::push(good, {2, 2, 2}) == Floats{1, 1, 1});
  CHECK(served.said().find("was turned away: " + difference) != std::string::npos);
  CHECK(served.said().find("client 2 from 127.0.0.1 was lost: the server takes in no weights") !=
        std::string::npos);
}

TEST_CASE("visited server: one whose training diverges is refused, and its earlier pushes are named") {
  Served served({});
  served.start();
  for (const char* kept :
       {"no checkpoint is from before them", "checkpoint-7 is from before them, and is kept"}) {
    Visitor diverging(served.file(), 60);
    diverging.join(Served::facts(), 16);
    CHECK(Served::push(diverging, {4, 4, 0}).size() == 3);
    CHECK(Served::push(diverging, {5, 5, 0}).size() == 3);
    const Floats before = Served::push(diverging, {0, 0, 0}, 0);
    CHECK(user_error([&] {
            Served::push(diverging, {1e30F, 0, 0});
          }).find("the server takes in no push that changes the weights by 1e+30") == 0);
    Visitor good(served.file(), 60);
    good.join(Served::facts(), 16);
    CHECK(Served::push(good, before) == before);
    good.leave();
    CHECK(served.said().find(std::string("and the last 2 of these may have spoiled them: ") + kept) !=
          std::string::npos);
  }
}

TEST_CASE("visited server: one that goes on from the account of another knows its clients") {
  const TemporaryFolder folder;
  std::optional<Served> served(std::in_place, folder / "server", VisitedServerOptions{.clients = 2});
  served->start();
  Visitor left(folder / "server", 60);
  left.join(Served::facts(), 16);
  left.leave();
  Visitor visitor(folder / "server", 60);
  visitor.join(Served::facts(), 16);
  CHECK(visitor.number() == 2);
  CHECK(Served::push(visitor, {2, 2, 2}) == Floats{1, 1, 1});
  const std::string account = served->saved();
  served.reset();

  Served next(folder / "server", {.rule = {.mix = 1}, .clients = 2});
  next.server().continue_from(1, account);
  next.start();
  CHECK(Served::push(visitor, {5, 5, 5}) == Floats{5, 5, 5});
  CHECK(visitor.number() == 2);
  visitor.leave();
  CHECK(next.end());  // the other client has left before
  CHECK(next.server().version() == 2);
  CHECK(next.server().table().to_text("client").find("       2        2        2             0.00") !=
        std::string::npos);
}

TEST_CASE(
    "visited server: one that goes on knows which clients were lost, and does not wait for them for ever") {
  const TemporaryFolder folder;
  std::optional<Served> served(std::in_place, folder / "server", VisitedServerOptions{.clients = 2});
  served->start();
  Visitor visitor(folder / "server", 60);
  visitor.join(Served::facts(), 16);
  Visitor(folder / "server", 60).join(Served::facts(), 16);
  while (served->said().find("client 2 from 127.0.0.1 was lost") == std::string::npos)
    std::this_thread::yield();
  Served::push(visitor, {2, 2, 2});
  const std::string account = served->saved();
  served.reset();

  Served next(folder / "server", {.clients = 2, .deadline_seconds = 0.2});
  next.server().continue_from(1, account);
  next.start();
  Served::push(visitor, {5, 5, 5});
  visitor.leave();
  CHECK(next.end());
}

TEST_CASE("visited server: a client that lives is not lost, however long it has nothing to push") {
  Served served({.deadline_seconds = 3});
  served.start();
  Visitor visitor(served.file(), 3);
  visitor.join(Served::facts(), 16);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  CHECK(Served::push(visitor, {2, 2, 2}) == Floats{1, 1, 1});
  visitor.leave();
  CHECK(served.end());
  CHECK(served.said().find("was lost") == std::string::npos);
}

TEST_CASE("visited server: ends when all were lost for longer than the deadline") {
  Served served({.deadline_seconds = 0.2});
  served.start();
  {
    Visitor lost(served.file(), 60);
    lost.join(Served::facts(), 16);
  }
  CHECK(device_error([&] { served.end(); }) ==
        "all clients were lost, and none has come back within 0.2 s; start the server with --resume, and "
        "clients");
  CHECK(served.said().ends_with(
      "client 1 from 127.0.0.1 was lost: the connection was closed; the others continue\n"));
}

}  // namespace plexaura::testing::visited_server_test
