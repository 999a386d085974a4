#include "core/base/events.h"

#include <chrono>
#include <doctest/doctest.h>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "tests/support/event_listener.h"

namespace plexaura::testing::events_test {

TEST_CASE("events go to the one who wants to know") {
  report_event(EventKind::step, 1);
  const EventListener listener;
  report_event(EventKind::step, 2);
  report_event(EventKind::error, 1, "no such file");
  CHECK(listener.heard == std::vector<std::string>{"3 2 ", "9 1 no such file"});
}

TEST_CASE("the end of an activity tells the one around it") {
  const EventListener listener;
  {
    const EventSpan phase(EventKind::phase, "validation");
    { const EventSpan data(EventKind::data, "samples"); }
  }
  CHECK(listener.heard ==
        std::vector<std::string>{"5 0 validation", "4 0 samples", "7 5 validation", "7 0 "});
}

TEST_CASE("a thread is in activities of its own") {
  const EventSpan phase(EventKind::phase, "saving");
  const EventListener listener;
  std::thread([] { const EventSpan wait(EventKind::wait, "a sum"); }).join();
  CHECK(listener.heard == std::vector<std::string>{"6 0 a sum", "7 0 "});
}

TEST_CASE("in silence no activity is told, and waits are counted") {
  const EventListener listener;
  const double before = seconds_waited();
  const EventSpan phase(EventKind::phase, "saving");
  {
    const EventSilence silence;
    const EventSpan wait(EventKind::wait, "a sum");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  { const EventSpan wait(EventKind::wait, "another sum"); }
  CHECK(listener.heard == std::vector<std::string>{"5 0 saving", "6 0 another sum", "7 5 saving"});
  CHECK(seconds_waited() - before >= 0.001);
}

TEST_CASE("a thread counts how long it waits, and a wait within a wait once") {
  const auto waits = [](EventKind outer) {
    const double begin = seconds_now();
    const double before = seconds_waited();
    {
      const EventSpan span(outer, "a sum");
      const EventSpan inner(EventKind::wait, "a part of it");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const double waited = seconds_waited() - before;
    CHECK(waited >= 0.02);
    CHECK(waited <= seconds_now() - begin);
  };
  waits(EventKind::wait);
  waits(EventKind::phase);
  const double before = seconds_waited();
  std::thread([&] { waits(EventKind::wait); }).join();
  CHECK(seconds_waited() == before);
}

}  // namespace plexaura::testing::events_test
