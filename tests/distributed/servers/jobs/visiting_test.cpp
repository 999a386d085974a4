#include "distributed/servers/jobs/visiting.h"

#include <doctest/doctest.h>
#include <future>
#include <span>
#include <vector>

#include "tests/distributed/servers/jobs/served.h"
#include "tests/distributed/strategies/moved_ranks.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::visiting_test {

namespace {

// Returns the parameters of a MovedRank, each of two elements.
LogicalWeights form() {
  using Specs = std::vector<ParameterSpec>;
  const TensorType type{DType::float64, {2}};
  return LogicalWeights(Specs{{"weight", type, ParameterRole::trainable, {}},
                              {"second", type, ParameterRole::trainable, {}},
                              {"running", type, ParameterRole::buffer, {}},
                              {"frozen", type, ParameterRole::frozen, {}}});
}

// Returns the first elements of trainable parameter, buffer and frozen parameter of a client, after each of
// several steps that move to 8. The second step ends an epoch. The client begins with 0. The server begins
// with 4, and has no other client.
std::vector<Numbers> values_of_client(const ServerRule& rule, std::optional<std::int64_t> push_every) {
  const TemporaryFolder folder;
  const Numbers beginning{4, -4, 4, -4, 4, -4, 4, -4};
  const auto bytes = std::as_bytes(std::span(beginning));
  VisitedServer server(folder / "server", form(), {bytes.begin(), bytes.end()}, {.rule = rule},
                       silent_host([] { return false; }));
  auto work = std::async(std::launch::async, [&] { return server.serve(); });
  Visitor visitor(folder / "server", 60);
  visitor.join(form().facts(), form().bytes());
  Visiting strategy(visitor, rule, push_every);
  MovedRank rank(strategy);
  std::vector<Numbers> values{rank.values()};
  for (std::int64_t number = 1; number <= 3; ++number) {
    rank.step({.number = number, .ends_epoch = number == 2, .samples = 4}, 8);
    values.push_back(rank.values());
    if (number == 2) strategy.show_weights();
  }
  values.push_back(rank.values());
  strategy.end();
  CHECK(work.get());
  return values;
}

}  // namespace

TEST_CASE("visiting: goes on with the weights of the server behind each push") {
  CHECK(values_of_client({.mix = 0.5}, 1) ==
        std::vector<Numbers>{{4, 4, 0}, {6, 6, 8}, {7, 7, 8}, {7.5, 7.5, 8}, {7.5, 7.5, 8}});
  CHECK(values_of_client({.push = ServerRule::Push::changes, .mix = 1}, 1) ==
        std::vector<Numbers>{{4, 4, 0}, {8, 8, 8}, {8, 8, 8}, {8, 8, 8}, {8, 8, 8}});
}

TEST_CASE("visiting: pushes at the end of an epoch what it has not pushed yet") {
  CHECK(values_of_client({.mix = 0.25}, std::nullopt) ==
        std::vector<Numbers>{{4, 4, 0}, {8, 8, 8}, {8, 8, 8}, {8, 8, 8}, {8, 8, 8}});
  CHECK(values_of_client({.mix = 0.25}, 2) ==
        std::vector<Numbers>{{4, 4, 0}, {8, 8, 8}, {5, 5, 8}, {8, 8, 8}, {8, 8, 8}});
}

}  // namespace plexaura::testing::visiting_test
