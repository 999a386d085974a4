#include "distributed/communicator/handshake.h"

#include <doctest/doctest.h>
#include <functional>
#include <vector>

#include "tests/support/thread_collective.h"

namespace plexaura::testing::handshake_test {
namespace {

using Facts = std::map<std::string, std::string>;

// Returns the sentence with which these ranks end, or "" if they agree.
std::string verdict(const std::vector<Facts>& facts) {
  try {
    ThreadRanks(static_cast<int>(facts.size())).run([&](Collective& ranks) {
      check_agreement(ranks, facts[static_cast<std::size_t>(ranks.rank())]);
    });
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("check_agreement: the same facts") {
  CHECK(verdict({{{"seed", "1"}, {"plan", "a b:c\n"}}, {{"seed", "1"}, {"plan", "a b:c\n"}}}) == "");
  CHECK(verdict({{}, {}}) == "");
}

TEST_CASE("check_agreement: names the fact, the ranks that differ from most, and the values") {
  CHECK(verdict({{{"seed", "7"}}, {{"seed", "42"}}, {{"seed", "42"}}}) ==
        "the ranks differ in 'seed': rank 0 has '7', but ranks 1 and 2 have '42': start all ranks with the "
        "same");
  CHECK(verdict({{{"seed", "7"}}, {{"seed", "42"}}}) ==
        "the ranks differ in 'seed': rank 1 has '42', but rank 0 has '7': start all ranks with the same");
  CHECK(verdict({{{"plan", "x"}, {"seed", "1"}}, {{"plan", "x"}}}) ==
        "the ranks differ in 'seed': rank 1 has nothing, but rank 0 has '1': start all ranks with the same");
}

TEST_CASE("check_agreement: the first fact that differs; long values are cut") {
  CHECK(verdict({{{"a", "1"}, {"b", "1"}}, {{"a", "2"}, {"b", "2"}}}).find("'a'") != std::string::npos);
  CHECK(verdict({{{"a", std::string(500, 'x')}}, {{"a", "2"}}}).size() < 200);
}

TEST_CASE("find_difference: says what differs, on every rank, and goes on") {
  const auto find = [](const std::vector<std::string>& kinds) {
    std::vector<std::string> found(kinds.size());
    ThreadRanks(static_cast<int>(kinds.size())).run([&](Collective& ranks) {
      const auto rank = static_cast<std::size_t>(ranks.rank());
      found[rank] = find_difference(ranks, "the processor", kinds[rank]);
      find_difference(ranks, "more", "calls");
    });
    return found;
  };
  CHECK(find({"a", "a"}) == std::vector<std::string>(2, ""));
  CHECK(find({"a", "b", "a"}) ==
        std::vector<std::string>(
            3, "the ranks differ in 'the processor': rank 1 has 'b', but ranks 0 and 2 have 'a'"));
}

TEST_CASE("check_all_or_none: names the ranks that found something, and those that did not") {
  const auto sentence = [](const std::vector<bool>& found) -> std::string {
    try {
      ThreadRanks(static_cast<int>(found.size())).run([&](Collective& ranks) {
        check_all_or_none(ranks, found[static_cast<std::size_t>(ranks.rank())], "a checkpoint in runs");
      });
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  };
  CHECK(sentence({true, true}).empty());
  CHECK(sentence({false, false}).empty());
  CHECK(
      sentence({true, false, false}) ==
      "rank 0 found a checkpoint in runs and ranks 1 and 2 did not: all ranks must be able to read the same "
      "files");
}

}  // namespace plexaura::testing::handshake_test
