#include <algorithm>
#include <array>
#include <chrono>
#include <doctest/doctest.h>
#include <fstream>
#include <limits>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "distributed/servers/jobs/visited_server.h"
#include "distributed/servers/jobs/visitor.h"
#include "distributed/wire/texts.h"
#include "tests/distributed/servers/jobs/letters.h"
#include "tests/distributed/servers/jobs/served.h"
#include "tests/distributed/servers/jobs/slow_link.h"
#include "tests/support/error_text.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::besieged_server_test {

namespace {

// Returns the connection of a client that has joined.
Line joined_line_to(Served& served, std::int64_t elements = 2) {
  Line line = line_to(served.place());
  post_letter(line, {.say = Say::join}, bytes_of(pack_facts(Served::facts("a", elements))));
  CHECK(take_letter(line).head.say == Say::welcome);
  return line;
}

// Returns the error with which the server ends the connection.
std::string end_of(Line& line) {
  return error_text<LineLost>([&] {
    while (true) take_letter(line);
  });
}

bool is_closed(const FileDescriptor& socket) {
  char next = 0;
  const ssize_t got = recv(socket.number(), &next, 1, MSG_DONTWAIT | MSG_PEEK);
  return got == 0 || (got < 0 && errno != EAGAIN);
}

// Returns the resident memory of this process in MB.
double resident_megabytes() {
  std::size_t all = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

}  // namespace

TEST_CASE("besieged server: of strangers that say nothing few are kept, and a client joins at once") {
  Served served({});
  served.start();
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 200; ++i) strangers.push_back(stranger_to(served.place()));
  Visitor visitor(served.file(), 60);
  visitor.join(Served::facts(), 16);
  CHECK(std::ranges::count_if(strangers, is_closed) >= 200 - 16);
  CHECK(served.push(visitor, {2, 2, 2}) == Floats{1, 1, 1});
  visitor.leave();
  CHECK(served.end());
  CHECK(std::ranges::count(served.said(), '\n') <=
        4);  // one that joined, one that is left, and two connections for all strangers
  CHECK(served.said().find("was turned away: too many came at once that did not prove to know the key") !=
        std::string::npos);
}

TEST_CASE("besieged server: bytes win a stranger no time") {
  Served served({});
  served.start();
  const FileDescriptor stranger = stranger_to(served.place());
  for (std::size_t i = 0; !is_closed(stranger) && i < 35; ++i) {
    send_raw(stranger, bytes_of("plx2" + std::string(31, 'x')).subspan(i, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  CHECK(is_closed(stranger));
  CHECK(served.said() ==
        "a client from 127.0.0.1 was turned away: it has not proven within 5 s that it knows the key\n");
}

TEST_CASE("besieged server: what no client sends costs its sender the connection, and the others go on") {
  Served served({});
  served.start();
  Visitor good(served.file(), 60);
  good.join(Served::facts(), 16);
  for (const char* text : {"x", "0", "-1:a", "1:a", "99999999999999999999999:a", "18446744073709551595:"}) {
    CAPTURE(text);
    Line line = line_to(served.place());
    post_letter(line, {.say = Say::join}, bytes_of(text));
    CHECK(end_of(line) == "the connection was closed");
  }
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const LineHead& head :
       {LineHead{.say = Say::push, .version = lowest, .steps = 1}, LineHead{.say = Say::push, .steps = -1},
        LineHead{.say = Say::push, .steps = std::numeric_limits<std::int64_t>::max()},
        LineHead{.say = Say::push, .elapsed_seconds = nan}, LineHead{.say = Say::push, .waited_seconds = -1},
        LineHead{.say = static_cast<Say>(99)}, LineHead{.say = Say::push, .steps = 1}}) {
    Line line = joined_line_to(served);
    post_letter(line, head);
    CHECK(end_of(line) == "the connection was closed");
  }
  CHECK(served.push(good, {2, 2, 2}) == Floats{1, 1, 1});
  CHECK(served.said().find(
            "was turned away: the bytes that came were not a letter of a server or its client\n") !=
        std::string::npos);
}

TEST_CASE("besieged server: facts that are far longer than its own are not read") {
  Served served({});
  served.start();
  Line line = line_to(served.place());
  const std::string error = error_text<LineLost>([&] {
    post_letter(line, {.say = Say::join}, bytes_of(std::string(1 << 20, 'a')));
    take_letter(line);
  });
  CHECK(error.starts_with("the connection "));
}

TEST_CASE("besieged server: few letters of a client are read in a turn") {
  const TemporaryFolder folder;
  int turns = 0;
  VisitedServer server(folder / "server", Served::form(2), bytes_of_floats({0, 0, 0, 9}), {},
                       silent_host([&] { return turns-- <= 0; }));
  const auto work = [&](int count) {
    turns = count;
    server.serve();
  };
  std::array<int, 2> ends{-1, -1};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  server.receive(FileDescriptor(ends[0]), "here");
  Line line(FileDescriptor{ends[1]}, Seal::Side::client, server.place().key, 1 << 10);
  while (!line.prove()) work(1);
  for (int i = 0; i < 10; ++i) line.post({.say = Say::beat});
  line.post({.say = static_cast<Say>(99)});  // the server ends the connection as soon as it has read this
  line.flush();
  work(2);
  CHECK_FALSE(line.take().has_value());
  work(1);
  CHECK(error_text<LineLost>([&] { line.take(); }) == "the connection was closed");
}

TEST_CASE("besieged server: letters without pause keep no other client from its answers") {
  Served served({});
  served.start();
  std::jthread noisy([&](const std::stop_token& stop) {
    Line line = joined_line_to(served);
    while (!stop.stop_requested()) post_letter(line, {.say = Say::beat});
  });
  Visitor visitor(served.file(), 60);
  visitor.join(Served::facts(), 16);
  for (int i = 0; i < 20; ++i) served.push(visitor, {2, 2, 2});
  CHECK(served.server().version() >= 20);
}

TEST_CASE("besieged server: a client that reads no answer gets no second one, and is lost") {
  constexpr std::int64_t elements = 1 << 20;
  Served served({.deadline_seconds = 3}, elements);
  served.start();
  Line line = joined_line_to(served, elements);
  const double before = resident_megabytes();
  for (int i = 0; i < 300; ++i) line.post({.say = Say::push});
  while (!line.flush()) await_line(line, true, 1);
  served.wait_until_said("was lost: it has been silent for 3 s");
  const double kept_by_sanitizer = address_sanitized ? 256 : 0;    // the sanitizer keeps freed memory
  CHECK(resident_megabytes() - before < 300 + kept_by_sanitizer);  // 300 answers would take 1,258 MB
}

TEST_CASE("besieged server: a client whose push takes longer than the deadline is not lost while it comes") {
  Served served({.deadline_seconds = 1});
  served.start();
  SlowLink link(connect_to(served.place(), 10));
  Line line(link.take_near_end(), Seal::Side::client, served.place().key, 1 << 10);
  prove(line);
  post_letter(line, {.say = Say::join}, bytes_of(pack_facts(Served::facts())));
  take_letter(line);
  link.slow_down(std::chrono::milliseconds(400));
  post_letter(line, {.say = Say::push, .steps = 1}, bytes_of_floats({2, 2, 2}));
  CHECK(floats_of(take_letter(line).content) == Floats{1, 1, 1});
  link.slow_down(std::chrono::milliseconds(0));
  post_letter(line, {.say = Say::leave});
  CHECK(served.end());
}

}  // namespace plexaura::testing::besieged_server_test
