#include "distributed/communicator/mailbox.h"

#include <array>
#include <deque>
#include <doctest/doctest.h>
#include <future>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"
#include "core/exchange/rank_lost.h"
#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/stub_transport.h"
#include "tests/distributed/wire/thread_transport.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::mailbox_test {
namespace {

constexpr int letter_tag = 3;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(const Letter& letter) {
  return {reinterpret_cast<const char*>(letter.bytes.data()), letter.bytes.size()};
}

int id_of_dead_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

// Returns a topology of two ranks on this machine, of which the second is dead.
Topology with_a_dead_rank() {
  ProcessPlace here = this_place();
  ProcessPlace dead = here;
  dead.number = 1;
  dead.process = id_of_dead_process();
  return {{here, dead}, 0};
}

constexpr std::size_t stuck_bytes = 8;

// A transport whose sends never finish. Letters are announced in the given order, and arrive completely
// except those of `stuck_bytes`.
class Stuck : public StubTransport {
 public:
  explicit Stuck(std::deque<Envelope> announced = {}) : announced_(std::move(announced)) {}
  Request send(std::span<const std::byte>, int, int) override { return {stuck_bytes}; }
  Request receive(std::span<std::byte> data, int, int) override { return {data.size()}; }
  bool done(Request& request) override { return request.handle != stuck_bytes || !stands_still; }
  void keep(const Request&, std::shared_ptr<const void>) override { ++kept; }
  std::optional<Envelope> waiting(int, int) override {
    if (announced_.empty()) return std::nullopt;
    const Envelope first = announced_.front();
    announced_.pop_front();
    return first;
  }

  static inline int kept = 0;
  static inline bool stands_still = true;

 private:
  std::deque<Envelope> announced_;
};

Topology living_ranks(int count) {
  std::vector<ProcessPlace> places(static_cast<std::size_t>(count), this_place());
  for (int rank = 0; rank < count; ++rank) places[static_cast<std::size_t>(rank)].number = rank;
  return {places, 0};
}

}  // namespace

TEST_CASE("mailbox: letters come from anybody, and those of one rank in order") {
  constexpr int rank_count = 3;
  constexpr int letter_count = 20;
  ThreadNetwork network(rank_count);
  const auto ends = endings(rank_count, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    const auto box = ranks.mailbox("letters");
    if (rank != 0) {
      for (int i = 0; i < letter_count; ++i) box->post(0, letter_tag, bytes_of(std::string(i, 'x')));
      const auto answer = box->take(letter_tag, 30);
      if (!answer || answer->from != 0 || text_of(*answer) != "enough") throw InternalError("no answer");
      return;
    }
    std::array<std::size_t, rank_count> next{};
    for (int i = 0; i < 2 * letter_count; ++i) {
      const auto letter = box->take(letter_tag, 30);
      if (!letter) throw InternalError("a letter is missing");
      if (letter->bytes.size() != next[static_cast<std::size_t>(letter->from)]++)
        throw InternalError("a letter came too early");
    }
    if (box->take(letter_tag, 0.01)) throw InternalError("a letter too many");
    for (const int to : {1, 2})
      if (box->post(to, letter_tag, bytes_of("enough")) != Posted::sent) throw InternalError("not sent");
  });
  CHECK(ends == std::vector<std::string>(rank_count, "fine"));
}

TEST_CASE("mailbox: what is driven arrives before it is taken, up to so many letters, and in order") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0)->duplicate());
  const auto sender = network.transport(1);
  const auto receiver = network.transport(0);
  Mailbox box(network.transport(0), living_ranks(2), alarm, 30);
  for (const char* text : {"a", "bc", "d"}) sender->send(bytes_of(text), 0, letter_tag);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(box.drive(letter_tag, 2));
  CHECK_FALSE(box.drive(letter_tag + 1, 2));
  REQUIRE(receiver->waiting(1, letter_tag));
  for (const char* text : {"a", "bc", "d"}) {
    const auto letter = box.take(letter_tag, 1);
    REQUIRE(letter);
    CHECK(text_of(*letter) == text);
  }
}

TEST_CASE("mailbox: who drives is told what is still under way") {
  const auto alarm = std::make_shared<Alarm>(std::make_unique<Stuck>());
  Mailbox leaving(std::make_unique<Stuck>(), living_ranks(2), alarm, 30);
  CHECK_FALSE(leaving.drive(letter_tag, 2));
  leaving.post(1, letter_tag, bytes_of("news"));
  CHECK(leaving.drive(letter_tag, 2));
  Mailbox arriving(std::make_unique<Stuck>(std::deque<Envelope>{{1, stuck_bytes}}), living_ranks(2), alarm,
                   30);
  CHECK(arriving.drive(letter_tag, 2));
}

TEST_CASE("mailbox: what has arrived is taken at once, and nobody waits for what has not") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0)->duplicate());
  const auto sender = network.transport(1);
  Mailbox box(network.transport(0), living_ranks(2), alarm, 30);
  CHECK_FALSE(box.take_arrived(letter_tag));
  for (const char* text : {"a", "bc"}) sender->send(bytes_of(text), 0, letter_tag);
  CHECK_FALSE(box.take_arrived(letter_tag + 1));
  for (const char* text : {"a", "bc"}) {
    const auto letter = box.take_arrived(letter_tag);
    REQUIRE(letter);
    CHECK(text_of(*letter) == text);
  }
  CHECK_FALSE(box.take_arrived(letter_tag));
}

TEST_CASE("mailbox: of letters with several tags those with the first tag come first") {
  constexpr std::array tags{letter_tag, letter_tag + 1};
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0)->duplicate());
  const auto sender = network.transport(1);
  Mailbox box(network.transport(0), living_ranks(2), alarm, 30);
  sender->send(bytes_of("long"), 0, tags[1]);
  sender->send(bytes_of("a"), 0, tags[0]);
  sender->send(bytes_of("b"), 0, tags[0]);
  for (const char* text : {"a", "b", "long"}) {
    const auto letter = box.take_from_living(tags, 1, "letters");
    REQUIRE(letter);
    CHECK(text_of(*letter) == text);
  }
  CHECK_FALSE(box.take_from_living(tags, 0.01, "letters"));
}

TEST_CASE("mailbox: a dead rank is a status, and what it had sent still comes") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0)->duplicate());
  Mailbox box(network.transport(0), with_a_dead_rank(), alarm, 30);
  CHECK(box.is_lost(1));
  CHECK(box.post(1, letter_tag, bytes_of("news")) == Posted::lost);
  const auto dead = network.transport(1);
  dead->send(bytes_of("its last"), 0, letter_tag);
  const auto letter = box.take(letter_tag, 1);
  REQUIRE(letter);
  CHECK(text_of(*letter) == "its last");
  CHECK_FALSE(box.take(letter_tag, 0.01));
}

TEST_CASE("mailbox: who needs all others ends with one that dies") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0)->duplicate());
  alarm->set_topology(with_a_dead_rank());
  Mailbox box(network.transport(0), with_a_dead_rank(), alarm, 30);
  CHECK_FALSE(box.take(letter_tag, 0.05));
  try {
    box.take_from_living(letter_tag, 30, "the news");
    FAIL("nobody has died");
  } catch (const RankLost& loss) {
    CHECK(loss.ranks() == std::vector<int>{1});
    CHECK(std::string(loss.what()).ends_with(" has died while rank 0 waited at 'the news' (a letter)"));
  }
}

TEST_CASE("mailbox: who gets letters all the time hears of a death, too") {
  struct Flood final : Stuck {
    std::optional<Envelope> waiting(int, int) override { return Envelope{1, 1}; }
  };
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0));
  alarm->set_topology(with_a_dead_rank());
  Mailbox box(std::make_unique<Flood>(), with_a_dead_rank(), alarm, 30);
  const auto take_many = [&] {
    for (Wait wait(10); !wait.expired();) box.take_from_living(letter_tag, 30, "the news");
  };
  CHECK_THROWS_AS(take_many(), RankLost);
}

TEST_CASE("mailbox: who has spared a dead rank goes on without it, and ends with the next one") {
  ThreadNetwork network(3);
  const auto ends = endings(3, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.outlive_ranks = true});
    const auto box = ranks.mailbox("letters");
    if (rank == 2) box->post(0, letter_tag, bytes_of("news"));
    if (rank != 0) return;
    const auto hear_of = [&](int dead) {
      network.bury(dead);
      try {
        while (true) box->take_from_living(letter_tag + 1, 30, "the news");
      } catch (const RankLost& loss) {
        if (!loss.is_outlived() || box->ranks_of(loss) != std::vector{dead})
          throw InternalError("another loss");
      }
      box->spare({dead});
      if (!box->is_lost(dead)) throw InternalError("it is not lost");
    };
    hear_of(1);
    const auto letter = box->take_from_living(letter_tag, 30, "the news");
    if (!letter || text_of(*letter) != "news") throw InternalError("no letter");
    hear_of(2);
  });
  CHECK(ends == std::vector<std::string>(3, "fine"));
}

TEST_CASE("mailbox: who gives up names those that do not answer") {
  ThreadNetwork network(2);
  std::promise<void> given_up;
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.deadline_seconds = 5});
    const auto box = ranks.mailbox("letters");
    if (rank != 0) return given_up.get_future().wait();
    try {
      if (!box->take_from_living(letter_tag, 0.05, "the news")) box->give_up(0.05, "the news");
    } catch (...) {
      given_up.set_value();
      throw;
    }
  });
  CHECK(ends[0].starts_with("says rank 1 did not come to 'the news' (a letter) within 0.05 s"));
}

TEST_CASE("mailbox: letters that nobody could take are refused") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0)->duplicate());
  Mailbox box(network.transport(0), with_a_dead_rank(), alarm, 30);
  CHECK_THROWS_WITH_AS(
      box.post(2, letter_tag, {}),
      "rank 0 cannot post a letter with tag 3 to rank 2 of 2: give another rank, and a tag of "
      "at least 0",
      UserError);
  CHECK_THROWS_AS(box.post(0, letter_tag, {}), UserError);
  CHECK_THROWS_AS(box.post(1, -1, {}), UserError);
}

TEST_CASE("mailbox: who waits for letters hears that the run ends") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    const auto box = ranks.mailbox("letters");
    if (rank == 0) {
      box->take(letter_tag, 30);
      throw InternalError("heard nothing");
    }
    ranks.leave(1);
    throw UserError("broken");
  });
  CHECK(ends[0] == "hears rank 1 has left with an error of its own, which it reports");
}

TEST_CASE(
    "mailbox: beside a letter of any length that does not leave there is room for so much, and for empty "
    "ones" *
    doctest::skip(sanitized)) {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0));
  const std::vector<std::byte> letter(Mailbox::most_bytes + 1);
  const auto post = [&](Mailbox& box, std::size_t bytes) {
    return box.post(1, letter_tag, std::span(letter).first(bytes));
  };
  for (const std::size_t first : {letter.size(), std::size_t{1}}) {
    Mailbox box(std::make_unique<Stuck>(), living_ranks(2), alarm, 30);
    CHECK(post(box, first) == Posted::sent);
    CHECK(post(box, first == 1 ? letter.size() : 1) == Posted::sent);
    CHECK(post(box, letter.size()) == Posted::full);
    CHECK(post(box, Mailbox::most_bytes) == Posted::full);
    CHECK(post(box, Mailbox::most_bytes - 1) == Posted::sent);
    CHECK(post(box, 1) == Posted::full);
    CHECK(post(box, 0) == Posted::sent);
  }
}

TEST_CASE("mailbox: letters that do not leave for one rank keep back none for another") {
  struct StuckOfThree final : Stuck {
    int size() const override { return 3; }
  };
  ThreadNetwork network(2);
  Mailbox box(std::make_unique<StuckOfThree>(), living_ranks(3),
              std::make_shared<Alarm>(network.transport(0)), 30);
  const std::vector<std::byte> letter(Mailbox::most_bytes);
  const auto post = [&](int to) { return box.post(to, letter_tag, letter); };
  CHECK(post(1) == Posted::sent);
  CHECK(post(1) == Posted::sent);
  CHECK(post(1) == Posted::full);
  CHECK(post(2) == Posted::sent);
}

TEST_CASE("mailbox: a letter that does not come whole is given up, and its memory kept") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0));
  for (const bool dead : {false, true}) {
    Stuck::kept = 0;
    Mailbox box(std::make_unique<Stuck>(std::deque{Envelope{1, stuck_bytes}}),
                dead ? with_a_dead_rank() : living_ranks(2), alarm, dead ? 30 : 0.2);
    CHECK_FALSE(box.take(letter_tag, 0));
    CHECK(Stuck::kept == 0);
    CHECK_FALSE(box.take(letter_tag, dead ? 1.5 : 0.5));
    CHECK(Stuck::kept == 1);
  }
}

TEST_CASE("mailbox: a letter that stands still keeps back those of its sender alone") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0));
  Mailbox box(std::make_unique<Stuck>(std::deque{Envelope{1, stuck_bytes}, Envelope{1, 4}, Envelope{0, 2}}),
              living_ranks(2), alarm, 30);
  const auto other = box.take(letter_tag, 20);
  REQUIRE(other);
  CHECK(other->from == 0);
  CHECK_FALSE(box.take(letter_tag, 0.01));
  Stuck::stands_still = false;
  for (const std::size_t bytes : {stuck_bytes, std::size_t{4}}) {
    const auto letter = box.take(letter_tag, 0);
    REQUIRE(letter);
    CHECK(letter->bytes.size() == bytes);
  }
  Stuck::stands_still = true;
}

TEST_CASE("mailbox: who looks without waiting hears that the run ends, in the middle of a letter, too") {
  for (const bool in_letter : {false, true}) {
    Stuck::kept = 0;
    ThreadNetwork network(2);
    Alarm other(network.transport(1));
    CHECK_THROWS_AS(other.fail("the end"), DeviceError);
    {
      Mailbox box(
          std::make_unique<Stuck>(in_letter ? std::deque{Envelope{1, stuck_bytes}} : std::deque<Envelope>()),
          living_ranks(2), std::make_shared<Alarm>(network.transport(0)), 30);
      CHECK_THROWS_WITH_AS(box.take(letter_tag, 0), "the end", Remote<DeviceError>);
    }
    CHECK(Stuck::kept == (in_letter ? 1 : 0));
  }
}

}  // namespace plexaura::testing::mailbox_test
