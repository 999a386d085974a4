#include "distributed/mailbox.h"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "distributed/group/group_communicator.h"
#include "tests/distributed/group/thread_transport.h"

namespace plexaura::testing {
namespace {

constexpr int kTag = 3;

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

// Two ranks on this machine, of which the second is dead.
Topology with_a_dead_rank() {
  ProcessPlace here = this_place();
  ProcessPlace dead = here;
  dead.number = 1;
  dead.process = id_of_dead_process();
  return {{here, dead}, 0};
}

}  // namespace

TEST_CASE("mailbox: letters come from anybody, and those of one rank in order") {
  constexpr int kRanks = 3;
  constexpr int kLetters = 20;
  ThreadNetwork network(kRanks);
  const auto ends = endings(kRanks, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    const auto box = ranks.mailbox("letters");
    if (rank != 0) {
      for (int i = 0; i < kLetters; ++i) box->post(0, kTag, bytes_of(std::string(i, 'x')));
      const auto answer = box->take(kTag, 30);
      if (!answer || answer->from != 0 || text_of(*answer) != "enough") throw InternalError("no answer");
      return;
    }
    std::array<std::size_t, kRanks> next{};
    for (int i = 0; i < 2 * kLetters; ++i) {
      const auto letter = box->take(kTag, 30);
      if (!letter) throw InternalError("a letter is missing");
      if (letter->bytes.size() != next[static_cast<std::size_t>(letter->from)]++)
        throw InternalError("a letter came too early");
    }
    if (box->take(kTag, 0.01)) throw InternalError("a letter too many");
    for (const int to : {1, 2})
      if (box->post(to, kTag, bytes_of("enough")) != Posted::sent) throw InternalError("not sent");
  });
  CHECK(ends == std::vector<std::string>(kRanks, "fine"));
}

TEST_CASE("mailbox: a dead rank is a status, and what it had sent still comes") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0)->duplicate());
  Mailbox box(network.transport(0), with_a_dead_rank(), alarm);
  CHECK(box.is_lost(1));
  CHECK(box.post(1, kTag, bytes_of("news")) == Posted::lost);
  const auto dead = network.transport(1);
  dead->send(bytes_of("its last"), 0, kTag);
  const auto letter = box.take(kTag, 1);
  REQUIRE(letter);
  CHECK(text_of(*letter) == "its last");
  CHECK_FALSE(box.take(kTag, 0.01));
}

TEST_CASE("mailbox: letters that nobody could take are refused") {
  ThreadNetwork network(2);
  const auto alarm = std::make_shared<Alarm>(network.transport(0)->duplicate());
  Mailbox box(network.transport(0), with_a_dead_rank(), alarm);
  CHECK_THROWS_WITH_AS(
      box.post(2, kTag, {}),
      "rank 0 cannot post a letter with tag 3 to rank 2 of 2: give another rank, and a tag of "
      "at least 0",
      UserError);
  CHECK_THROWS_AS(box.post(0, kTag, {}), UserError);
  CHECK_THROWS_AS(box.post(1, -1, {}), UserError);
}

TEST_CASE("mailbox: who waits for letters hears that the run ends") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    const auto box = ranks.mailbox("letters");
    if (rank == 0) {
      box->take(kTag, 30);
      throw InternalError("heard nothing");
    }
    ranks.leave(true);
    throw UserError("broken");
  });
  CHECK(ends[0] == "hears rank 1 has left with an error of its own, which it reports");
}

}  // namespace plexaura::testing
