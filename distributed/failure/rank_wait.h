#pragma once

#include "distributed/failure/alarm.h"
#include "distributed/wire/wait.h"

namespace plexaura {

// One wait of this rank for others. Listens to the alarm meanwhile, and gives up when the deadline is
// over. The alarm and what the call refers to must outlive it.
class RankWait {
 public:
  RankWait(Alarm& alarm, const PendingCall& call)
      : alarm_(alarm), call_(call), wait_(call.deadline_seconds) {}

  // Throws an Error (see speaks()) when the run is over.
  void pause() {
    if (wait_.is_time_to_look()) {
      alarm_.look(call_);
      if (wait_.expired()) alarm_.give_up(call_);
    }
    wait_.pause();
  }
  // Something moved: the deadline counts from now.
  void progressed() { wait_.progressed(); }

 private:
  Alarm& alarm_;
  PendingCall call_;
  Wait wait_;
};

}  // namespace plexaura
