#include "distributed/servers/ranks/parameter_client.h"

#include <chrono>
#include <doctest/doctest.h>
#include <memory>
#include <thread>

#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing::parameter_client_test {

// If it took in letters, its thread would call the library while the remaining ranks agree on how to
// continue.
TEST_CASE("parameter client: a threaded one that has given up takes in no letters") {
  ThreadNetwork network(2);
  ProcessPlace other = this_place();
  other.number = 1;
  Mailbox mailbox(network.transport(1), {{this_place(), other}, 1},
                  std::make_shared<Alarm>(network.transport(1)->duplicate()), 60);
  const std::unique_ptr<Transport> server = network.transport(0);
  const std::unique_ptr<Transport> looker = network.transport(1);
  const auto send = [&] {
    const std::byte letter{7};
    server->send(std::span(&letter, 1), 1, weights_tag);
  };
  const auto waits = [&] { return looker->waiting(0, weights_tag).has_value(); };
  ParameterClient client(mailbox, 1, {}, 1, ClientKind::threaded, false);
  send();
  for (int i = 0; i < 30'000 && waits(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE_FALSE(waits());
  client.give_up();
  send();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(waits());
}

}  // namespace plexaura::testing::parameter_client_test
