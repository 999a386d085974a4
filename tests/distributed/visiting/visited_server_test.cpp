#include "distributed/visiting/visited_server.h"

#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/server/shared_weights.h"
#include "distributed/texts.h"
#include "distributed/visiting/visitor.h"
#include "tests/distributed/visiting/slow_letter.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::visited_server_test {

namespace {

using Numbers = std::vector<float>;

LogicalWeights form() {
  using Parts = std::vector<LogicalWeights::Part>;
  return LogicalWeights(Parts{{"weight", {DType::float32, {2}}, ParameterRole::trainable},
                              {"running", {DType::float32, {1}}, ParameterRole::buffer},
                              {"frozen", {DType::float32, {1}}, ParameterRole::frozen}});
}

std::vector<std::byte> bytes_of(const Numbers& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

Numbers numbers_of(std::span<const std::byte> bytes) {
  const auto numbers = elements_of<const float>(bytes);
  return {numbers.begin(), numbers.end()};
}

// In a thread, with weights 0, 0, buffer 0 and a frozen 9.
class Served {
 public:
  Served(const std::filesystem::path& file, VisitedServerOptions options) : options_(std::move(options)) {
    options_.facts["model"] = "a";
    server_.emplace(
        file, form_, bytes_of({0, 0, 0, 9}), options_,
        VisitedServerHost{.is_to_end = [this] { return is_to_end_.load(); },
                          .pushed = [this](const VisitedServer& server) { saved_ = server.account(); },
                          .keep_before = [this](std::int64_t version) { return version == 0 ? "" : kept_; },
                          .say = [this](const std::string& sentence) { note(sentence); },
                          .warn = [this](const std::string& sentence) { note(sentence); }});
  }
  ~Served() {
    is_to_end_ = true;
    if (work_.valid()) work_.wait();
  }
  VisitedServer& server() { return *server_; }
  void start() {
    work_ = std::async(std::launch::async, [this] { return server_->serve(); });
  }
  // Whether it was over.
  bool end() { return work_.get(); }
  std::string said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }
  const std::string& saved() const { return saved_; }

 private:
  void note(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    said_ += sentence + "\n";
  }

  LogicalWeights form_ = form();
  VisitedServerOptions options_;
  std::atomic<bool> is_to_end_ = false;
  std::mutex mutex_;
  std::string said_;
  std::string saved_;
  std::string kept_ = "checkpoint-7";
  std::optional<VisitedServer> server_;
  std::future<bool> work_;
};

VisitFacts facts(const std::string& model = "a") {
  VisitFacts all = form().facts();
  all["model"] = model;
  return all;
}

// A connection that knows the key, and does with it what it likes.
Line line_to(const std::filesystem::path& file) {
  const auto place = read_server_file(file);
  Line line(connect_to(*place, 10), 1 << 20);
  post_letter(line, {.say = Say::ask}, plexaura::bytes_of(place->key));
  take_letter(line);
  return line;
}

// Of a client that has joined.
Line joined_line_to(const std::filesystem::path& file) {
  Line line = line_to(file);
  post_letter(line, {.say = Say::join}, plexaura::bytes_of(pack_facts(facts())));
  CHECK(take_letter(line).head.say == Say::welcome);
  return line;
}

// Why the server has closed the connection, as it says.
std::string end_of(Line& line) {
  return error_text<LineLost>([&] {
    while (true) take_letter(line);
  });
}

Numbers push(Visitor& visitor, const Numbers& numbers, std::int64_t steps = 1) {
  return numbers_of(visitor.exchange(bytes_of(numbers), steps));
}

}  // namespace

TEST_CASE("visited server: takes in pushes of those that join and leave, and tells how stale they were") {
  const TemporaryFolder folder;
  Served served(folder / "server", {.rule = {.mix = 0.5}, .samples = {{"data.class 0", "setosa"}}});
  served.start();
  Visitor first(folder / "server", 60);
  CHECK(first.samples().at("data.class 0") == "setosa");
  CHECK(numbers_of(first.join(facts(), 16)) == Numbers{0, 0, 0, 9});
  CHECK(push(first, {4, 8, 2}) == Numbers{2, 4, 1});
  {
    Visitor second(folder / "server", 60);
    CHECK(numbers_of(second.join(facts(), 16)) == Numbers{2, 4, 1, 9});
    CHECK(second.number() == 2);
    CHECK(push(first, {2, 4, 1}) == Numbers{2, 4, 1});
    CHECK(push(second, {4, 4, 1}, 3) == Numbers{3, 4, 1});
    CHECK(push(second, {100, 100, 100}, 0) == Numbers{3, 4, 1});
    second.leave();
  }
  first.leave();
  CHECK(served.end());
  CHECK(served.server().version() == 3);
  CHECK(numbers_of(served.server().weights()) == Numbers{3, 4, 1, 9});
  const std::string table = served.server().table().to_text("client");
  CHECK(table.find("       1        2        2             0.00") != std::string::npos);
  CHECK(table.find("       2        3        1             1.00") != std::string::npos);
  // The server may read the two letters at once, and that of the first client first.
  CHECK(served.said().find("client 1 has left; clients that are there: ") != std::string::npos);
  CHECK(served.said().ends_with(" has left; clients that are there: 0\n"));
}

TEST_CASE("visited server: buffers go a part of their way, of as many as there are clients") {
  const TemporaryFolder folder;
  Served served(folder / "server", {.rule = {.push = ServerRule::Push::changes, .mix = 1}, .clients = 2});
  served.start();
  Visitor first(folder / "server", 60);
  first.join(facts(), 16);
  CHECK(push(first, {1, 2, 4}) == Numbers{1, 2, 4});
  Visitor second(folder / "server", 60);
  second.join(facts(), 16);
  CHECK(push(first, {1, 2, 8}) == Numbers{2, 4, 6});
  first.leave();
  second.leave();
  CHECK(served.end());
}

TEST_CASE("visited server: refuses who differs and what is not finite, and the others go on") {
  const TemporaryFolder folder;
  Served served(folder / "server", {.clients = 1});
  served.start();
  Visitor good(folder / "server", 60);
  good.join(facts(), 16);
  Visitor other(folder / "server", 60);
  const std::string difference =
      "the server and this client differ in 'model': the server has 'a', and the client 'b'; start both with "
      "the "
      "same";
  CHECK(user_error([&] { other.join(facts("b"), 16); }) == difference);
  const float infinite = std::numeric_limits<float>::infinity();
  Visitor diverged(folder / "server", 60);
  diverged.join(facts(), 16);
  CHECK(user_error([&] {
          push(diverged, {0, infinite, 0});
        }) ==
        "the server takes in no weights that are not finite: training diverged; lower the learning rate");
  CHECK(push(good, {2, 2, 2}) == Numbers{1, 1, 1});
  CHECK(served.said().find("was turned away: " + difference) != std::string::npos);
  CHECK(served.said().find("client 2 from 127.0.0.1 was lost: the server takes in no weights") !=
        std::string::npos);
}

TEST_CASE("visited server: one whose training diverges is refused, and its earlier pushes are named") {
  const TemporaryFolder folder;
  Served served(folder / "server", {});
  served.start();
  for (const char* kept :
       {"no checkpoint is from before them", "checkpoint-7 is from before them, and is kept"}) {
    Visitor diverging(folder / "server", 60);
    diverging.join(facts(), 16);
    CHECK(push(diverging, {4, 4, 0}).size() == 3);
    CHECK(push(diverging, {5, 5, 0}).size() == 3);
    const Numbers before = numbers_of(diverging.exchange({}, 0));
    CHECK(user_error([&] {
            push(diverging, {1e30F, 0, 0});
          }).find("the server takes in no push that changes the weights by 1e+30") == 0);
    Visitor good(folder / "server", 60);
    good.join(facts(), 16);
    CHECK(push(good, before) == before);
    good.leave();
    CHECK(served.said().find(std::string("of which the last 2 may have spoiled them: ") + kept) !=
          std::string::npos);
  }
}

TEST_CASE("visited server: one that goes on from the account of another knows its clients") {
  const TemporaryFolder folder;
  std::optional<Served> served(std::in_place, folder / "server", VisitedServerOptions{.clients = 2});
  served->start();
  Visitor left(folder / "server", 60);
  left.join(facts(), 16);
  left.leave();
  Visitor visitor(folder / "server", 60);
  visitor.join(facts(), 16);
  CHECK(visitor.number() == 2);
  CHECK(push(visitor, {2, 2, 2}) == Numbers{1, 1, 1});
  const std::string account = served->saved();
  served.reset();

  Served next(folder / "server", {.rule = {.mix = 1}, .clients = 2});
  next.server().go_on_from(1, account);
  next.start();
  CHECK(push(visitor, {5, 5, 5}) == Numbers{5, 5, 5});
  CHECK(visitor.number() == 2);
  visitor.leave();
  CHECK(next.end());  // the other one had left before
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
  visitor.join(facts(), 16);
  Visitor(folder / "server", 60).join(facts(), 16);
  while (served->said().find("client 2 from 127.0.0.1 was lost") == std::string::npos)
    std::this_thread::yield();
  push(visitor, {2, 2, 2});
  const std::string account = served->saved();
  served.reset();

  Served next(folder / "server", {.clients = 2, .deadline_seconds = 0.2});
  next.server().go_on_from(1, account);
  next.start();
  push(visitor, {5, 5, 5});
  visitor.leave();
  CHECK(next.end());
}

TEST_CASE("visited server: a client that lives is not lost, however long it has nothing to push") {
  const TemporaryFolder folder;
  Served served(folder / "server", {.deadline_seconds = 3});
  served.start();
  Visitor visitor(folder / "server", 3);
  visitor.join(facts(), 16);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  CHECK(push(visitor, {2, 2, 2}) == Numbers{1, 1, 1});
  visitor.leave();
  CHECK(served.end());
  CHECK(served.said().find("was lost") == std::string::npos);
}

TEST_CASE("visited server: a client whose push takes longer than the deadline is not lost while it comes") {
  const TemporaryFolder folder;
  Served served(folder / "server", {.deadline_seconds = 1});
  served.start();
  Line line = joined_line_to(folder / "server");
  post_slowly(line, {.say = Say::push, .steps = 1}, bytes_of({2, 2, 2}), std::chrono::milliseconds(500));
  CHECK(numbers_of(take_letter(line).content) == Numbers{1, 1, 1});
  post_letter(line, {.say = Say::leave});
  CHECK(served.end());
}

TEST_CASE(
    "visited server: what is no letter of a client costs its sender the connection, and the others go on") {
  const TemporaryFolder folder;
  Served served(folder / "server", {});
  served.start();
  Visitor good(folder / "server", 60);
  good.join(facts(), 16);
  for (const char* text : {"x", "0", "-1:a", "1:a", "99999999999999999999999:a", "18446744073709551595:"}) {
    CAPTURE(text);
    Line line = line_to(folder / "server");
    post_letter(line, {.say = Say::join}, plexaura::bytes_of(text));
    CHECK(end_of(line) == "the connection was closed");
  }
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const LineHead& head :
       {LineHead{.say = Say::push, .version = lowest, .steps = 1}, LineHead{.say = Say::push, .steps = -1},
        LineHead{.say = Say::push, .steps = std::numeric_limits<std::int64_t>::max()},
        LineHead{.say = Say::push, .elapsed_seconds = nan}, LineHead{.say = Say::push, .waited_seconds = -1},
        LineHead{.say = static_cast<Say>(99)}, LineHead{.say = Say::push, .steps = 1}}) {
    Line line = joined_line_to(folder / "server");
    post_letter(line, head);
    CHECK(end_of(line) == "the connection was closed");
  }
  CHECK(push(good, {2, 2, 2}) == Numbers{1, 1, 1});
  CHECK(served.said().find("was turned away: what came was no letter of a server or its client\n") !=
        std::string::npos);
}

TEST_CASE("visited server: ends when all were lost for longer than the deadline") {
  const TemporaryFolder folder;
  Served served(folder / "server", {.deadline_seconds = 0.2});
  served.start();
  {
    Visitor lost(folder / "server", 60);
    lost.join(facts(), 16);
  }
  CHECK(device_error([&] { served.end(); }) ==
        "all clients were lost, and none has come back within 0.2 s; start the server with --resume, and "
        "clients");
  CHECK(served.said().ends_with(
      "client 1 from 127.0.0.1 was lost: the connection was closed; the others go on\n"));
}

}  // namespace plexaura::testing::visited_server_test
