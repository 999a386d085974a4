#include "distributed/communicator/run_ranks.h"

#include <doctest/doctest.h>
#include <stdexcept>
#include <string>

#include "core/base/error.h"
#include "tests/support/event_listener.h"

namespace plexaura::testing {

namespace {

// The ends and errors that the process has reported.
std::vector<std::string> ends_of(const EventListener& events) {
  std::vector<std::string> ends;
  for (const std::string& event : events.heard)
    for (const EventKind kind : {EventKind::ready, EventKind::error, EventKind::end})
      if (event.starts_with(std::to_string(static_cast<int>(kind)) + " ")) ends.push_back(event);
  return ends;
}

std::string event(EventKind kind, int number, const std::string& text = "") {
  return fmt::format("{} {} {}", static_cast<int>(kind), number, text);
}

}  // namespace

TEST_CASE("rank session: the work gets the communicator of all ranks, and its status is returned") {
  const EventListener events;
  RankSession session;
  CHECK(session.open({.deadline_seconds = 7}).deadline_seconds() == 7);
  CHECK(session.end(0) == 0);
  CHECK(ends_of(events) == std::vector{event(EventKind::ready, 1), event(EventKind::end, 0)});
  CHECK(run_ranks({}, [](Communicator& ranks) { return 2 + ranks.size(); }) == 3);
}

TEST_CASE("rank session: an error is reported before the end, and gives the status") {
  const EventListener events;
  CHECK(run_ranks({}, [](Communicator&) -> int { throw UserError("a test has no mistakes"); }) == 2);
  CHECK(ends_of(events) == std::vector{event(EventKind::ready, 1),
                                       event(EventKind::error, 2, "a test has no mistakes"),
                                       event(EventKind::end, 2), event(EventKind::end, 2)});
  CHECK(run_ranks({}, [](Communicator&) -> int { throw std::runtime_error("a test has no faults"); }) == 1);
}

TEST_CASE("rank session: an error before there are ranks gives the status, too") {
  const EventListener events;
  CHECK(RankSession().fail(UserError("a test has no ranks")) == 2);
  CHECK(ends_of(events).front() == event(EventKind::error, 2, "a test has no ranks"));
}

}  // namespace plexaura::testing
