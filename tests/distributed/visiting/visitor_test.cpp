#include "distributed/visiting/visitor.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "distributed/visiting/server_file.h"
#include "tests/distributed/visiting/slow_letter.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::visitor_test {

namespace {

// The first letter of whoever comes, if somebody does.
void answer_one(int listener, const LineHead& head, std::span<const std::byte> content) {
  const int socket = accept(listener, nullptr, nullptr);
  if (socket < 0) return std::this_thread::yield();
  Line line(socket, 1 << 10);
  try {
    take_letter(line);
    post_letter(line, head, content);
  } catch (const LineLost&) {
    return;
  }
}

}  // namespace

TEST_CASE("visitor: gives up after the deadline where there is no server, or one that says nothing") {
  const TemporaryFolder folder;
  const std::string path = (folder / "server").string();
  const std::string end = "; see whether the server runs, and start this client again";
  CHECK(device_error([&] { Visitor(path, 0.2); }) ==
        "--join: " + path + " names no server that answered within 0.2 s" + end);
  ServerPlace place;
  const int listener = listen_anywhere(place);
  ServerFile file(path);
  file.tell(place);
  CHECK(device_error([&] { Visitor(path, 0.2); }) ==
        "--join: " + path + " names a server that has not answered for 0.2 s" + end);
  close(listener);
}

TEST_CASE("visitor: does not wait where the file is not that of a server") {
  const TemporaryFolder folder;
  write_text(folder / "mine.csv", "a,b\n1,2\n");
  CHECK(user_error([&] { Visitor(folder / "mine.csv", 3600); }) ==
        "--join: '" + (folder / "mine.csv").string() +
            "' is no file that a server has written; name the one of --serve");
}

TEST_CASE("visitor: does not trust what is no letter of a server") {
  const TemporaryFolder folder;
  const std::string path = (folder / "server").string();
  ServerPlace place;
  const int listener = listen_anywhere(place);
  ServerFile file(path);
  file.tell(place);
  for (const char* text : {"x", "0", "1:a", "18446744073709551595:"}) {
    CAPTURE(text);
    const std::jthread server([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) answer_one(listener, {.say = Say::told}, bytes_of(text));
    });
    CHECK(device_error([&] { Visitor(path, 0.5); }).starts_with("--join: " + path + " names "));
  }
  close(listener);
}

TEST_CASE("visitor: waits for an answer of which something comes within each deadline") {
  const TemporaryFolder folder;
  const std::string path = (folder / "server").string();
  ServerPlace place;
  const int listener = listen_anywhere(place);
  ServerFile file(path);
  file.tell(place);
  const std::vector<std::byte> weights(16, std::byte{7});
  std::jthread server([&] {
    while (true) {
      const int socket = accept(listener, nullptr, nullptr);
      if (socket < 0) continue;
      Line line(socket, 1 << 10);
      take_letter(line);
      post_letter(line, {.say = Say::told});
      take_letter(line);
      post_slowly(line, {.say = Say::welcome, .number = 1}, weights, std::chrono::milliseconds(300));
      return;
    }
  });
  Visitor visitor(path, 1);
  CHECK(visitor.join({}, weights.size()) == weights);
  close(listener);
}

}  // namespace plexaura::testing::visitor_test
