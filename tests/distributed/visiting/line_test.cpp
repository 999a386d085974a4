#include "distributed/visiting/line.h"

#include <array>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::line_test {

namespace {

struct Ends {
  explicit Ends(std::size_t most_bytes = 1 << 20) {
    std::array<int, 2> sockets{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) == 0);
    near.emplace(sockets[0], most_bytes);
    far.emplace(sockets[1], most_bytes);
  }
  std::optional<Line> near;
  std::optional<Line> far;
};

std::string error_of(Line& line) {
  return error_text<LineLost>([&] { line.take(); });
}

}  // namespace

TEST_CASE("line: letters come whole and in order, also those that the system does not take at once") {
  constexpr std::size_t most = std::size_t{8} << 20;
  Ends ends(most);
  CHECK_FALSE(ends.far->take().has_value());
  const std::string text(most, 'x');
  ends.near->post({.say = Say::push, .version = 3, .steps = 5}, bytes_of(text));
  ends.near->post({.say = Say::leave});
  bool has_waited = false;
  std::optional<LineLetter> letter;
  while (!letter) {
    has_waited = !ends.near->flush() || has_waited;
    letter = ends.far->take();
  }
  CHECK(has_waited);
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
    Ends ends;
    const std::string text(sizeof(LineHead), 'G');
    CHECK(send(ends.near->socket(), text.data(), text.size(), 0) == std::ssize(text));
    CHECK(error_of(*ends.far) == "what came was no letter of a server or its client");
  }
  SUBCASE("a letter that is too long") {
    Ends ends;
    ends.far->take_up_to(7);
    ends.near->post({.say = Say::ask}, bytes_of("8 letters"));
    ends.near->flush();
    CHECK(error_of(*ends.far) == "what came was no letter of a server or its client");
  }
}

}  // namespace plexaura::testing::line_test
