#pragma once

#include <memory>

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

  // Says the same without waiting for anyone, so that ranks which do wait learn it. Best effort.
  virtual void leave_word(Announcement mine) noexcept = 0;
};

// Over messages: rank 0 hears everyone and answers. The transport and the places must outlive it.
std::unique_ptr<RollCall> make_message_roll_call(Transport& transport, const Places& places,
                                                 double deadline_seconds);

}  // namespace plexaura
