#include "core/base/events.h"

#include <atomic>
#include <utility>

#include "core/base/clock.h"

namespace plexaura {
namespace {

std::atomic<EventSink*> sink = nullptr;
thread_local const EventSpan* innermost = nullptr;

// Measures how long a thread waits. Waits may be nested.
struct Waits {
  int depth = 0;
  double began = 0;
  double seconds = 0;

  void begin() noexcept {
    if (depth++ == 0) began = seconds_now();
  }
  void end() noexcept {
    if (--depth == 0) seconds += seconds_now() - began;
  }
};
thread_local Waits waits;
thread_local bool silent = false;

}  // namespace

EventSink::~EventSink() = default;

void send_events_to(EventSink* where) noexcept { sink.store(where); }

void report_event(EventKind kind, std::int64_t number, std::string_view text) noexcept {
  if (EventSink* const where = sink.load(std::memory_order_acquire)) where->event(kind, number, text);
}

double seconds_waited() noexcept { return waits.seconds; }

EventSilence::EventSilence() noexcept : outer_(std::exchange(silent, true)) {}

EventSilence::~EventSilence() { silent = outer_; }

EventSpan::EventSpan(EventKind kind, std::string_view text) noexcept
    : kind_(kind), text_(text), outer_(innermost), is_told_(!silent) {
  innermost = this;
  if (kind_ == EventKind::wait) waits.begin();
  if (is_told_) report_event(kind_, 0, text_);
}

EventSpan::~EventSpan() {
  innermost = outer_;
  if (kind_ == EventKind::wait) waits.end();
  if (!is_told_) return;
  if (outer_ == nullptr)
    report_event(EventKind::back);
  else
    report_event(EventKind::back, static_cast<std::int64_t>(outer_->kind_), outer_->text_);
}

}  // namespace plexaura
