#pragma once

#include "distributed/failure/alarm.h"
#include "distributed/group/wait.h"

namespace plexaura {

// One wait of this rank for others, at the call that `at` tells. Listens to the alarm meanwhile, and gives up
// when the deadline is over. The alarm and the signature must outlive it.
class RankWait {
 public:
  RankWait(Alarm& alarm, const CallSignature& at, double deadline_seconds)
      : alarm_(alarm), at_(at), deadline_(deadline_seconds), wait_(deadline_seconds) {}

  // Throws a DeviceError (see speaks()) when the run is over.
  void pause() {
    if (++pauses_ % kPausesBetweenLooks == 0) {
      alarm_.look(at_);
      if (wait_.expired()) alarm_.give_up(at_, deadline_);
    }
    wait_.pause();
  }
  // Something moved: the deadline counts from now.
  void progressed() { wait_.progressed(); }

 private:
  static constexpr unsigned kPausesBetweenLooks = 64;

  Alarm& alarm_;
  const CallSignature& at_;
  double deadline_;
  Wait wait_;
  unsigned pauses_ = 0;
};

}  // namespace plexaura
