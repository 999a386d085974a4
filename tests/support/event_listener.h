#pragma once

#include <fmt/format.h>
#include <string>
#include <vector>

#include "core/base/events.h"

namespace plexaura::testing {

// Takes the events of the process while it lives: "3 17 " is the kind 3 with the number 17 and no text.
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
