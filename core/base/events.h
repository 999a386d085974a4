#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// The activity of a process that an event reports, for tools that observe the process from outside. Files
// store the numbers: see training/files/event_file.h. The comments name the event's number and text if it has
// them.
enum class EventKind : std::uint32_t {
  start = 1,    // the process has started
  ready = 2,    // all ranks are connected; number: the ranks
  step = 3,     // a step begins; its number
  data = 4,     // waits for samples
  phase = 5,    // works alone, and other ranks may have to wait for it; text: the work
  wait = 6,     // is in a call of all ranks, or waits for a rank; text: its name. See seconds_waited()
  back = 7,     // data, phase or wait has ended; kind and text of the event around it
  saved = 8,    // a checkpoint was saved; the number of updates so far
  error = 9,    // ends with an error that this rank reports; exit status, sentence
  echo = 10,    // ends with an error that another rank reports; exit status, sentence
  lost = 11,    // ends because ranks were lost; the first of them, sentence
  signal = 12,  // was asked to end by a signal; the signal's number
  exit = 13,    // exit() was called; its argument
  end = 14,     // the work is done; exit status
  paused = 15,  // the process did not run for a while; the duration in seconds
  bucket = 16,  // a bucket of gradients was made; the bucket's number, and the names of its tensors
  // Continues although ranks have died; the number of ranks left, spares included, and a sentence.
  survived = 17,
  spare = 18,  // 1: waits as a spare for a rank to die; 0: has taken a dead rank's place
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
