#include "distributed/failure/rank_ranges.h"

#include <doctest/doctest.h>
#include <numeric>

namespace plexaura::testing::rank_ranges_test {

using Texts = std::vector<std::string>;
using Ranks = std::vector<int>;

TEST_CASE("rank ranges: ranks that follow each other are one range") {
  CHECK(rank_ranges({}, 100).empty());
  CHECK(rank_ranges({7}, 100) == Texts{"7"});
  CHECK(rank_ranges({0, 1, 2, 5, 8, 9}, 100) == Texts{"0-2 5 8-9"});
  CHECK(read_rank_ranges("0-2 5 8-9") == Ranks{0, 1, 2, 5, 8, 9});
  CHECK(read_rank_ranges("").empty());
}

TEST_CASE("rank ranges: what does not fit in one text comes in more, and no number is cut") {
  CHECK(rank_ranges({1000, 1002, 1004}, 10) == Texts{"1000 1002", "1004"});
  Ranks every_second(1500);
  for (int i = 0; i < 1500; ++i) every_second[static_cast<std::size_t>(i)] = 1000 + 2 * i;
  Ranks read;
  for (const std::string& text : rank_ranges(every_second, 1015)) {
    CHECK(text.size() <= 1015);
    const Ranks ranks = read_rank_ranges(text);
    read.insert(read.end(), ranks.begin(), ranks.end());
  }
  CHECK(read == every_second);
  Ranks host(256);
  std::iota(host.begin(), host.end(), 3840);
  CHECK(rank_ranges(host, 1015) == Texts{"3840-4095"});
}

}  // namespace plexaura::testing::rank_ranges_test
