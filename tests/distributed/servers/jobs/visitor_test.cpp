#include "distributed/servers/jobs/visitor.h"

#include <chrono>
#include <doctest/doctest.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include "distributed/servers/jobs/server_file.h"
#include "tests/distributed/servers/jobs/letters.h"
#include "tests/distributed/servers/jobs/slow_link.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::visitor_test {

namespace {

// The address of a server that does not answer yet.
struct Place {
  Place() : listener(listen_at({}, place)) {
    place.key = a_key;
    file.tell(place);
  }
  std::string path() const { return (folder / "server").string(); }
  // Returns the next connection, or none if there is no client.
  std::optional<FileDescriptor> guest() const {
    pollfd wait{listener.number(), POLLIN, 0};
    poll(&wait, 1, 10);
    FileDescriptor socket(accept(listener.number(), nullptr, nullptr));
    if (!socket.is_there()) return std::nullopt;
    return socket;
  }

  TemporaryFolder folder;
  ServerPlace place;
  FileDescriptor listener;
  ServerFile file{folder / "server"};
};

Line server_end(FileDescriptor socket, const std::string& key = a_key) {
  return Line(std::move(socket), Seal::Side::server, key, 1 << 10);
}

// Answers all connections in a thread. Clients that disconnect are ignored.
template <class Answer>
std::jthread answer_all(const Place& place, Answer answer) {
  return std::jthread([&place, answer](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      try {
        if (auto guest = place.guest()) answer(*std::move(guest));
      } catch (const LineLost&) {
        continue;
      }
    }
  });
}

std::string error_of_visitor(const Place& place, double deadline_seconds) {
  return device_error([&] { Visitor(place.path(), deadline_seconds); });
}

// Returns the error of a client that was lost for this reason.
std::string no_answer(const Place& place, const std::string& deadline, const std::string& why) {
  return "--join: " + place.path() + " names no server that answered within " + deadline +
         " s (at 127.0.0.1, port " + std::to_string(place.place.port) + ": " + why +
         "); see whether the server runs, and start this client again";
}

}  // namespace

TEST_CASE("visitor: gives up after the deadline where there is no server, or one that says nothing") {
  Place place;
  const std::string path = (place.folder / "another").string();
  CHECK(device_error([&] { Visitor(path, 0.2); }) ==
        "--join: " + path +
            " names no server that answered within 0.2 s; see whether the server runs, and start this client "
            "again");
  CHECK(error_of_visitor(place, 0.2) ==
        no_answer(place, "0.2", "the program that listens there has not proven that it knows the key"));
  place.listener = FileDescriptor();
  CHECK(error_of_visitor(place, 0.2) == no_answer(place, "0.2", "no program listens there"));
}

TEST_CASE("visitor: does not wait where the file is not that of a server") {
  const TemporaryFolder folder;
  write_text(folder / "mine.csv", "a,b\n1,2\n");
  CHECK(user_error([&] { Visitor(folder / "mine.csv", 3600); }) ==
        "--join: '" + (folder / "mine.csv").string() +
            "' was not written by a server; name the file of --serve");
}

TEST_CASE("visitor: tells nothing to who has taken the port of its server and does not know the key") {
  const Place place;
  SUBCASE("it answers by the rules, with another key") {
    const auto impostor = answer_all(place, [](FileDescriptor guest) {
      Line line = server_end(std::move(guest), std::string(64, '0'));
      take_letter(line);
    });
    CHECK(
        error_of_visitor(place, 1).starts_with("--join: " + place.path() + " names no server that answered"));
  }
  SUBCASE("it sends bytes without end") {
    const auto impostor = answer_all(place, [](const FileDescriptor& guest) {
      send_raw(guest, bytes_of(std::string(1 << 16, 'x')));
      const std::string came = read_to_end(guest);
      CHECK(came.size() <= 36);
      CHECK(came.find(a_key) == std::string::npos);
    });
    CHECK(
        error_of_visitor(place, 1).starts_with("--join: " + place.path() + " names no server that answered"));
  }
  SUBCASE("it sends a byte now and then, which wins it no time") {
    const auto impostor = answer_all(place, [](const FileDescriptor& guest) {
      for (int i = 0; i < 60; ++i) {
        send_raw(guest, bytes_of("x"));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    });
    CHECK(error_of_visitor(place, 1) ==
          no_answer(place, "1", "the program that listens there has not proven that it knows the key"));
  }
}

TEST_CASE("visitor: does not trust what is no letter of a server") {
  for (const char* text : {"x", "0", "1:a", "18446744073709551595:"}) {
    CAPTURE(text);
    const Place place;
    const auto server = answer_all(place, [text](FileDescriptor guest) {
      Line line = server_end(std::move(guest));
      take_letter(line);
      post_letter(line, {.say = Say::told}, bytes_of(text));
      take_letter(line);
    });
    CHECK(error_of_visitor(place, 0.5).starts_with("--join: " + place.path() + " names "));
  }
}

TEST_CASE("visitor: waits for an answer of which something comes within each deadline") {
  const Place place;
  const std::vector<std::byte> weights(16, std::byte{7});
  const auto server = answer_all(place, [&](FileDescriptor guest) {
    SlowLink link(std::move(guest));
    Line line = server_end(link.take_near_end());
    take_letter(line);
    post_letter(line, {.say = Say::told});
    take_letter(line);
    link.slow_down(std::chrono::milliseconds(300));
    post_letter(line, {.say = Say::welcome, .number = 1}, weights);
    while (true) take_letter(line);
  });
  Visitor visitor(place.path(), 1);
  CHECK(visitor.join({}, weights.size()) == weights);
}

}  // namespace plexaura::testing::visitor_test
