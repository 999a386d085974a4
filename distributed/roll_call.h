#pragma once

#include <memory>

#include "distributed/alarm.h"
#include "distributed/announcement.h"
#include "distributed/places.h"
#include "distributed/transport.h"

namespace plexaura {

// The beginning of every collective call: all ranks say what they are about to do, and go on only when all
// mean the same.
class RollCall {
 public:
  virtual ~RollCall();

  // Waits for all ranks. Throws a DeviceError (see speaks()) that names the ranks that did not come within
  // the deadline, or two ranks that mean different calls. What a rank wrote to memory before is visible to
  // all ranks of its node after.
  virtual void meet(Announcement mine) = 0;
};

// Over messages: rank 0 hears everyone and answers. Transport, places and alarm must outlive it.
std::unique_ptr<RollCall> make_message_roll_call(Transport& transport, const Places& places, Alarm& alarm,
                                                 double deadline_seconds);

}  // namespace plexaura
