#include "distributed/servers/jobs/line.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <doctest/doctest.h>
#include <sys/socket.h>

#include "tests/distributed/servers/jobs/letters.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::line_test {

namespace {

using Bytes = std::vector<std::byte>;
using Side = Seal::Side;

constexpr std::size_t megabyte = std::size_t{1} << 20;
constexpr std::size_t bytes_of_greeting = 36;

std::array<FileDescriptor, 2> pair_of_sockets() {
  std::array<int, 2> sockets{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) == 0);
  return {FileDescriptor(sockets[0]), FileDescriptor(sockets[1])};
}

bool are_proven(Line& near, Line& far) {
  const bool is_near_proven = near.prove();
  return far.prove() && is_near_proven;
}

struct Ends {
  explicit Ends(std::size_t most_bytes = megabyte) {
    auto [one, other] = pair_of_sockets();
    near.emplace(std::move(one), Side::client, a_key, most_bytes);
    far.emplace(std::move(other), Side::server, a_key, most_bytes);
    while (!are_proven(*near, *far)) continue;
  }
  std::optional<Line> near;
  std::optional<Line> far;
};

// A connection whose bytes pass through a third party, which may change them.
struct Tapped {
  explicit Tapped(const std::string& key_of_server = a_key) {
    auto [near_end, near_tap] = pair_of_sockets();
    auto [far_end, far_tap] = pair_of_sockets();
    near.emplace(std::move(near_end), Side::client, a_key, megabyte);
    far.emplace(std::move(far_end), Side::server, key_of_server, megabyte);
    to_near = std::move(near_tap);
    to_far = std::move(far_tap);
  }
  void give_far(const Bytes& bytes) const { send_raw(to_far, bytes); }
  void give_near(const Bytes& bytes) const { send_raw(to_near, bytes); }
  // Returns the bytes that an end has sent since the last call.
  static Bytes taken(const FileDescriptor& tap) {
    Bytes all(megabyte);
    const ssize_t got = recv(tap.number(), all.data(), all.size(), MSG_DONTWAIT);
    all.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return all;
  }
  Bytes from_near() { return taken(to_near); }
  Bytes from_far() { return taken(to_far); }
  // Passes the bytes of the proof on unchanged, like an honest network.
  void prove_both() {
    while (!are_proven(*near, *far)) {
      record.push_back(from_near());
      give_far(record.back());
      give_near(from_far());
    }
  }
  Bytes letter(const std::string& text) {
    near->post({.say = Say::push}, bytes_of(text));
    near->flush();
    return from_near();
  }

  std::optional<Line> near;
  std::optional<Line> far;
  FileDescriptor to_near;
  FileDescriptor to_far;
  std::vector<Bytes> record;  // the messages of the near end during the proof
};

std::string error_of(Line& line) {
  return error_text<LineLost>([&] { line.take(); });
}

bool contains(const Bytes& bytes, const std::string& text) {
  return !std::ranges::search(bytes, bytes_of(text)).empty();
}

const std::string changed = "the bytes that came were changed on the way, or belong to another connection";
const std::string strange = "the bytes that came were not a letter of a server or its client";

}  // namespace

TEST_CASE("line: letters come whole and in order, also those that the system does not take at once") {
  for (const std::size_t size : {std::size_t{0}, (std::size_t{64} << 10) - sizeof(LineHead),
                                 std::size_t{64} << 10, 8 * megabyte, 8 * megabyte - sizeof(LineHead)}) {
    CAPTURE(size);
    Ends ends(8 * megabyte);
    CHECK_FALSE(ends.far->take().has_value());
    const std::string text(size, 'x');
    ends.near->post({.say = Say::push, .version = 3, .steps = 5}, bytes_of(text));
    ends.near->post({.say = Say::leave});
    bool has_waited = false;
    std::optional<LineLetter> letter;
    while (!letter) {
      has_waited = !ends.near->flush() || has_waited;
      letter = ends.far->take();
    }
    CHECK(has_waited == (size > megabyte));
    CHECK(letter->head.say == Say::push);
    CHECK(letter->head.version == 3);
    CHECK(letter->head.steps == 5);
    CHECK(text_of(*letter) == text);
    CHECK(ends.near->flush());
    letter = ends.far->take();
    REQUIRE(letter.has_value());
    CHECK(letter->head.say == Say::leave);
    CHECK(letter->content.empty());
  }
}

TEST_CASE("line: says that the other end has gone, or is of another program") {
  SUBCASE("gone, behind its last letter") {
    Ends ends;
    ends.near->post({.say = Say::leave});
    CHECK(ends.near->flush());
    ends.near.reset();
    CHECK(ends.far->take().has_value());
    CHECK(error_of(*ends.far) == "the connection was closed");
    ends.far->post({.say = Say::weights});
    CHECK(error_text<LineLost>([&] { ends.far->flush(); }) == "the connection broke: Broken pipe");
  }
  SUBCASE("another program") {
    auto [one, other] = pair_of_sockets();
    Line line(std::move(other), Side::server, a_key, megabyte);
    send_raw(one, bytes_of(std::string(100, 'G')));
    CHECK(error_of(line) == strange);
  }
  SUBCASE("a letter that is too long") {
    Ends ends;
    ends.far->take_up_to(8);
    ends.near->post({.say = Say::ask}, bytes_of("9 letters"));
    ends.near->flush();
    CHECK(error_of(*ends.far) == strange);
  }
}

TEST_CASE("line: a client of the first build is told to be built anew, and its key is not looked at") {
  auto [client, end] = pair_of_sockets();
  Line line(std::move(end), Side::server, a_key, megabyte);
  const std::string key(32, 'k');
  const LineHead ask{.say = Say::ask, .bytes = key.size()};
  send_raw(client, std::as_bytes(std::span(&ask, 1)));
  send_raw(client, bytes_of(key));
  CHECK(error_of(line) ==
        "it is of an earlier build of Plexaura; build it from the same sources as the server");
  const std::string came = read_to_end(client);
  LineHead answer;
  REQUIRE(came.size() > sizeof answer);
  std::memcpy(&answer, came.data(), sizeof answer);
  CHECK(answer.begin == LineHead::sign);
  CHECK(answer.say == Say::refused);
  CHECK(answer.bytes == came.size() - sizeof answer);
  CHECK(came.ends_with("build this client from the same sources"));
}

TEST_CASE("line: neither the key nor a letter can be read on its way") {
  Tapped tapped;
  tapped.prove_both();
  Bytes sent = tapped.letter("weights of a client");
  for (const Bytes& bytes : tapped.record) sent.insert(sent.end(), bytes.begin(), bytes.end());
  CHECK_FALSE(contains(sent, a_key));
  CHECK_FALSE(contains(sent, "weights"));
}

TEST_CASE("line: who does not know the key gets from a client no more than its greeting") {
  Tapped tapped(std::string(64, '8'));
  tapped.near->prove();
  const Bytes sent = tapped.from_near();
  CHECK(sent.size() == bytes_of_greeting);
  SUBCASE("it answers by the rules, with another key") {
    tapped.give_far(sent);
    tapped.far->prove();
    tapped.give_near(tapped.from_far());
    CHECK(error_of(*tapped.near) == "it does not know the key");
  }
  SUBCASE("it sends back what it was sent") {
    tapped.give_near(sent);
    tapped.give_near(sent);
    CHECK(error_of(*tapped.near) == "it does not know the key");
  }
  SUBCASE("it sends zeros") {
    tapped.give_near(Bytes(100));
    CHECK(error_of(*tapped.near) == strange);
  }
  CHECK(tapped.from_near().empty());
}

TEST_CASE("line: who does not know the key gets no letter through to a server") {
  Tapped tapped(std::string(64, '8'));
  tapped.near->prove();
  tapped.give_far(tapped.from_near());
  tapped.far->prove();
  tapped.give_far(Bytes(56, std::byte{1}));
  CHECK(error_of(*tapped.far) == "it does not know the key");
}

TEST_CASE("line: a whole connection that was recorded is of no use for another one") {
  Tapped honest;
  honest.prove_both();
  const Bytes letter = honest.letter("text");
  Tapped repeated;
  for (const Bytes& bytes : honest.record) {
    repeated.give_far(bytes);
    if (error_text<LineLost>([&] { repeated.far->prove(); }) == "it does not know the key") return;
  }
  FAIL("the recorded proof was accepted");
}

TEST_CASE("line: a letter that was changed, repeated, left out or moved on its way ends the connection") {
  Tapped tapped;
  tapped.prove_both();
  const Bytes first = tapped.letter("first");
  const Bytes second = tapped.letter("second");
  SUBCASE("undisturbed") {
    tapped.give_far(first);
    CHECK(text_of(*tapped.far->take()) == "first");
    tapped.give_far(second);
    CHECK(text_of(*tapped.far->take()) == "second");
  }
  SUBCASE("changed") {
    Bytes other = first;
    other[10] ^= std::byte{1};
    tapped.give_far(other);
    CHECK(error_of(*tapped.far) == changed);
  }
  SUBCASE("repeated") {
    tapped.give_far(first);
    CHECK(tapped.far->take().has_value());
    tapped.give_far(first);
    CHECK(error_of(*tapped.far) == changed);
  }
  SUBCASE("left out") {
    tapped.give_far(second);
    CHECK(error_of(*tapped.far) == changed);
  }
  SUBCASE("sent back to where it came from") {
    tapped.give_near(first);
    CHECK(error_of(*tapped.near) == changed);
  }
  SUBCASE("cut, with the rest of another one") {
    Bytes other(first.begin(), first.end() - 5);
    other.insert(other.end(), second.end() - 5, second.end());
    tapped.give_far(other);
    CHECK(error_of(*tapped.far) == changed);
  }
  SUBCASE("cut, with nothing behind") {
    tapped.give_far(Bytes(first.begin(), first.end() - 5));
    tapped.to_far = FileDescriptor();
    CHECK(error_of(*tapped.far) == "the connection was closed");
  }
  SUBCASE("with nothing in it") {
    tapped.give_far(Bytes(4));
    CHECK(error_of(*tapped.far) == strange);
  }
  SUBCASE("with a length that no chunk has") {
    tapped.give_far(Bytes(4, std::byte{255}));
    CHECK(error_of(*tapped.far) == strange);
  }
}

TEST_CASE("line: a file without a key is none of this build") {
  auto [one, other] = pair_of_sockets();
  CHECK(error_text<LineLost>([&end = one] { Line(std::move(end), Side::client, "short", 0); }) ==
        "the file of the server contains no key of this build");
}

}  // namespace plexaura::testing::line_test
