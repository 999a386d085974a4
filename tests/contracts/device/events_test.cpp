// Events are reused while streams still process work that earlier uses of them have enqueued.

#include <doctest/doctest.h>

#include "tests/support/backend.h"

namespace plexaura::testing::events_test {

TEST_CASE("a signal releases a stream also where an earlier recording of the event is passed after it") {
  Backend& backend = test_backend();
  const auto event = backend.make_event();
  const auto computed = backend.make_event();
  const auto copied = backend.make_event();
  for (int step = 0; step < 3; ++step) {
    event->reset();
    event->hold(Stream::copy);
    event->record(Stream::compute);
    computed->record(Stream::compute);
    event->reset();
    event->hold(Stream::copy);
    event->signal();
    computed->wait();
    copied->record(Stream::copy);
    copied->wait();
    CHECK(copied->passed());
  }
}

}  // namespace plexaura::testing::events_test
