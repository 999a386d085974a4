#pragma once

#include <fmt/format.h>
#include <string>
#include <vector>

#include "core/base/events.h"

namespace plexaura::testing {

// Receives the events of the process for its lifetime. "3 17 " is an event of kind 3 with the number 17 and
// no text.
class EventListener final : public EventSink {
 public:
  EventListener() { send_events_to(this); }
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;
  ~EventListener() override { send_events_to(nullptr); }
  void event(EventKind kind, std::int64_t number, std::string_view text) noexcept override {
    heard.push_back(fmt::format("{} {} {}", static_cast<int>(kind), number, text));
  }
  std::vector<std::string> heard;
};

}  // namespace plexaura::testing
