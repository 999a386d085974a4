#include "distributed/communicator/long_text.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::long_text_test {

TEST_CASE("texts of any length arrive whole, in pieces of at most a mebibyte") {
  const std::size_t mebibyte = std::size_t{1} << 20;
  const std::vector<std::size_t> lengths{0, 1, mebibyte, 3 * mebibyte + 5};
  const auto text = [](std::size_t length) {
    std::string made(length, ' ');
    for (std::size_t i = 0; i < length; ++i) made[i] = static_cast<char>('a' + i % 23);
    return made;
  };
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {});
    for (const std::size_t length : lengths) {
      if (rank == 1) {
        send_text(ranks, {0}, text(length), "a text");
        continue;
      }
      std::string whole;
      std::size_t longest = 0;
      const auto take = [&](std::string_view piece) {
        longest = std::max(longest, piece.size());
        whole += piece;
      };
      receive_text(ranks, {1}, take, "a text");
      if (whole != text(length)) throw InternalError("the text has changed");
      if (longest > mebibyte) throw InternalError("a piece is longer than a mebibyte");
    }
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>(2, "fine"));
}

}  // namespace plexaura::testing::long_text_test
