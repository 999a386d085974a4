#include "core/device/forwarding_backend.h"

#include <doctest/doctest.h>

#include "tests/support/backend.h"

namespace plexaura::testing::forwarding_backend_test {

TEST_CASE("backends that pass calls on to one device take turns at it") {
  Backend& device = test_backend();
  const ForwardingBackend first(device);
  const ForwardingBackend second(device);
  CHECK(&first.turn() == &device.turn());
  CHECK(&second.turn() == &device.turn());
}

}  // namespace plexaura::testing::forwarding_backend_test
