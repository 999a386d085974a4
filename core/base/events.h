#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// The activity of a process that an event reports, for tools that observe the process from outside. Files
// store the numbers: see training/files/event_file.h. The comments name the event's number and text if it has
// them.
enum class EventKind : std::uint32_t {
  start = 1,  // the process has started
  ready = 2,  // all ranks are connected; number: the ranks
  step = 3,   // a step begins; number: the step
  data = 4,   // waits for samples
  phase = 5,  // works alone, and other ranks may have to wait for it; text: the work
  wait = 6,   // is in a call of all ranks, or waits for a rank; text: its name. See seconds_waited()
  back = 7,   // a span of data, phase or wait has ended; number and text: kind and text of the span around it
  saved = 8,  // a checkpoint was saved; number: the updates so far
  error = 9,  // the process ends with an error that this rank reports; number: exit status; text: the error
  echo = 10,  // as `error`, but another rank reports the error
  lost = 11,  // the process ends because ranks were lost; number: the first of them; text: the error
  signal = 12,  // a signal asked the process to end; number: the signal
  exit = 13,    // exit() was called; number: its argument
  end = 14,     // the work is done; number: exit status
  paused = 15,  // the process did not run for a while; number: the duration in seconds
  bucket = 16,  // a bucket of gradients was made; number: the bucket; text: the names of its tensors
  // The process continues although ranks have died. Number: the ranks left, spares included. Text: a sentence.
  survived = 17,
  spare = 18,  // number 1: waits as a spare for a rank to die; 0: has taken a dead rank's place
  serves = 19  // begins to store weights or sums for other ranks, and makes no steps itself
};

// Receives events. Any thread may call event(), and so may a signal handler, so it neither locks nor
// allocates.
class PLEXAURA_API EventSink {
 public:
  virtual ~EventSink();
  virtual void event(EventKind kind, std::int64_t number, std::string_view text) noexcept = 0;
};

// The sink of the whole process. Null disables events. It must outlive every thread that reports events.
PLEXAURA_API void send_events_to(EventSink* sink) noexcept;

PLEXAURA_API void report_event(EventKind kind, std::int64_t number = 0, std::string_view text = {}) noexcept;

// Returns the seconds that this thread has spent in completed spans of the kind `wait`. The records of epochs
// report them as waited_share.
PLEXAURA_API double seconds_waited() noexcept;

// While an object lives, new spans of this thread send no events. Waits are still counted in
// seconds_waited().
class PLEXAURA_API EventSilence {
 public:
  EventSilence() noexcept;
  ~EventSilence();
  EventSilence(const EventSilence&) = delete;
  EventSilence& operator=(const EventSilence&) = delete;

 private:
  bool outer_;
};

// Reports that this thread does the activity of `kind` while the span lives. `text` names the activity and
// must outlive the span.
class PLEXAURA_API EventSpan {
 public:
  EventSpan(EventKind kind, std::string_view text) noexcept;
  ~EventSpan();
  EventSpan(const EventSpan&) = delete;
  EventSpan& operator=(const EventSpan&) = delete;

 private:
  EventKind kind_;
  std::string_view text_;
  const EventSpan* outer_;
  bool is_told_;
};

}  // namespace plexaura
