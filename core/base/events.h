#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// What a process tells about itself, for whoever asks from outside what it does, or did last. The numbers stand in
// files: see training/files/event_file.h.
enum class EventKind : std::uint32_t {
  start = 1,  // of the process
  ready = 2,  // all ranks have come together; the number of ranks
  step = 3,   // begins; its number
  data = 4,   // waits for samples
  phase = 5,  // works alone, and other ranks may have to wait for it; what it does
  wait = 6,   // is in a call of all ranks, or waits for another rank; its name. Counts into seconds_waited()
  back = 7,   // one of the last three has ended; kind and text of the one around it
  saved = 8,  // a checkpoint was saved; the updates so far
  error = 9,  // ends with an error that this rank reports; exit status, sentence
  echo = 10,  // ends with an error that another rank reports; exit status, sentence
  lost = 11,  // ends because ranks were lost; the first of them, sentence
  signal = 12,    // is asked to end; the signal
  exit = 13,      // somebody has called exit(); its argument
  end = 14,       // the work is done; exit status
  paused = 15,    // the process has not run; for how many seconds
  bucket = 16,    // of gradients: its number, the tensors in it
  survived = 17,  // goes on although ranks have died; how many are left, with the spares; sentence
  spare = 18,     // 1: waits outside the training for a rank to die; 0: has taken the place of one
  serves = 19     // from now on keeps the weights or sums for the others, and makes no steps of its own
};

// Where events go. May be called from any thread, and from a signal handler: neither locks nor allocates.
class PLEXAURA_API EventSink {
 public:
  virtual ~EventSink();
  virtual void event(EventKind kind, std::int64_t number, std::string_view text) noexcept = 0;
};

// The sink of the whole process. Null disables events. It must outlive every thread that reports events.
PLEXAURA_API void send_events_to(EventSink* sink) noexcept;

PLEXAURA_API void tell_event(EventKind kind, std::int64_t number = 0, std::string_view text = {}) noexcept;

// How long this thread has been in spans of the kind `wait`, but those that still last: what records of epochs call
// waited_share.
PLEXAURA_API double seconds_waited() noexcept;

// While one lives, spans of this thread that begin tell no events; waits are counted all the same.
class PLEXAURA_API EventSilence {
 public:
  EventSilence() noexcept;
  ~EventSilence();
  EventSilence(const EventSilence&) = delete;
  EventSilence& operator=(const EventSilence&) = delete;

 private:
  bool outer_;
};

// While one lives, this thread does what it says. `text` has to live as long.
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
