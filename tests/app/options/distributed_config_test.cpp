#include "app/options/distributed_config.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "app/data/open_data.h"
#include "app/options/run_config.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::distributed_config_test {

namespace {

OnLoss on_loss(const std::string& distributed) {
  return read_distributed_alone(Config::parse("distributed: {" + distributed + "}\n", "test.yaml")).on_loss;
}

AsyncServerOptions server_of(const std::string& more) {
  const Config config = Config::parse(
      fmt::format("data: {{format: csv, path: {}/models/iris.csv}}\ntraining: {{epochs: 2, batch_size: 2, "
                  "optimizer: {{name: sgd, learning_rate: 0.1}}}}\ndistributed: {{strategy: downpour{}}}\n",
                  PLEXAURA_SOURCE, more),
      "test.yaml");
  return read_options(config, open_data(config).train->size(), 2).strategy.async_server;
}

}  // namespace

TEST_CASE("the others go on without a client of a server that dies, unless the file says that all end") {
  for (const std::string strategy : {"async-server", "downpour"}) {
    CHECK(on_loss("strategy: " + strategy) == OnLoss::drop);
    CHECK(on_loss("on_loss: end, strategy: " + strategy) == OnLoss::end);
  }
  CHECK(on_loss("strategy: send-recv") == OnLoss::end);
}

TEST_CASE("all end with a rank that dies where several serve, and 'drop' is refused") {
  CHECK(on_loss("strategy: async-server, servers: 1") == OnLoss::drop);
  CHECK(on_loss("strategy: async-server, servers: 2") == OnLoss::end);
  CHECK(on_loss("strategy: async-server, servers: 2, on_loss: end") == OnLoss::end);
  CHECK(user_error([] { on_loss("strategy: downpour, servers: 2, on_loss: drop"); })
            .ends_with(
                "distributed.on_loss is 'drop', and the weights of a server would be lost with it, since "
                "distributed.servers is above 1; remove one of them"));
}

TEST_CASE("all end with a rank that dies where clients have several ranks, and 'drop' is refused") {
  CHECK(on_loss("strategy: async-server, group: 2") == OnLoss::end);
  CHECK(user_error([] { on_loss("strategy: downpour, group: 2, on_loss: drop"); })
            .ends_with("distributed.on_loss is 'drop', and a client would lose one of its ranks, since "
                       "distributed.group is above 1; remove one of them"));
}

TEST_CASE("changes of clients are added whole, unless distributed.mix says otherwise") {
  CHECK(server_of("").rule.mix == 1);
  CHECK(server_of(", mix: 0.25, damping: 1").rule.mix == 0.25);
  CHECK(server_of(", mix: 0.25, damping: 1").rule.damping == 1);
}

TEST_CASE("the limit of a push is above 1, and a deadline long enough for a message") {
  CHECK(server_of("").push_limit == PushJudge::default_limit);
  CHECK(server_of(", push_limit: 3").push_limit == 3);
  CHECK(user_error([] { server_of(", push_limit: 1"); }).find("distributed.push_limit is '1'") !=
        std::string::npos);
  const auto deadline = [](const std::string& seconds) {
    return read_distributed_alone(
               Config::parse("distributed: {deadline_seconds: " + seconds + "}\n", "test.yaml"))
        .communicator.deadline_seconds;
  };
  CHECK(deadline("0.1") == 0.1);
  for (const char* seconds : {"0", "1e-9", "0.09"})
    CHECK(user_error([&] { deadline(seconds); }).find("distributed.deadline_seconds is ") !=
          std::string::npos);
}

TEST_CASE("as many ranks serve as distributed.servers says, and a client has as many as distributed.group") {
  CHECK(server_of("").servers == 1);
  CHECK(server_of("").group == 1);
  CHECK(server_of(", servers: 3, group: 2").servers == 3);
  CHECK(server_of(", servers: 3, group: 2").group == 2);
}

TEST_CASE("clients of a server train on while letters travel where distributed.client says so") {
  CHECK(server_of("").client == ClientKind::serial);
  CHECK(server_of(", client: serial").client == ClientKind::serial);
  CHECK(server_of(", client: threaded").client == ClientKind::threaded);
}

}  // namespace plexaura::testing::distributed_config_test
