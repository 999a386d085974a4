#pragma once

#include "distributed/failure/alarm.h"
#include "distributed/wire/wait.h"

namespace plexaura {

// One wait of this rank for other ranks. Calls the alarm regularly, and calls its give_up() when the deadline has passed.
// The alarm and the references in the call must outlive the RankWait.
class RankWait {
 public:
  RankWait(Alarm& alarm, const PendingCall& call)
      : alarm_(alarm), call_(call), wait_(call.deadline_seconds) {}

  // Pauses shortly before the next attempt. Throws the errors of Alarm::look() and Alarm::give_up().
  void pause() {
    if (wait_.is_time_to_look()) {
      alarm_.look(call_);
      if (wait_.expired()) alarm_.give_up(call_);
    }
    wait_.pause();
  }
  // Restarts the deadline. Called whenever the call has made progress.
  void progressed() { wait_.progressed(); }

 private:
  Alarm& alarm_;
  PendingCall call_;
  Wait wait_;
};

}  // namespace plexaura
