#include "core/events.h"

#include <atomic>

namespace plexaura {
namespace {

std::atomic<EventSink*> sink = nullptr;
thread_local const EventSpan* innermost = nullptr;

}  // namespace

EventSink::~EventSink() = default;

void send_events_to(EventSink* where) noexcept { sink.store(where); }

void tell_event(EventKind kind, std::int64_t number, std::string_view text) noexcept {
  if (EventSink* const where = sink.load(std::memory_order_acquire)) where->event(kind, number, text);
}

EventSpan::EventSpan(EventKind kind, std::string_view text) noexcept
    : kind_(kind), text_(text), outer_(innermost) {
  innermost = this;
  tell_event(kind_, 0, text_);
}

EventSpan::~EventSpan() {
  innermost = outer_;
  if (outer_ == nullptr)
    tell_event(EventKind::back);
  else
    tell_event(EventKind::back, static_cast<std::int64_t>(outer_->kind_), outer_->text_);
}

}  // namespace plexaura
