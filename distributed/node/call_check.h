#pragma once

#include <memory>

#include "distributed/failure/alarm.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/topology.h"
#include "distributed/wire/transport.h"

namespace plexaura {

// The beginning of every collective call: all ranks say what they are about to do, and go on only when all
// mean the same.
class CallCheck {
 public:
  virtual ~CallCheck();

  // Waits for all ranks, and gives the pace that rank 0 says. Throws an Error (see speaks()) that names the ranks that
  // did not come in time, or two ranks that mean different calls. What a rank wrote to memory before is visible to all
  // ranks of its node after.
  virtual std::uint8_t meet(CallSignature mine, double deadline_seconds) = 0;
};

// Over messages: rank 0 hears everyone and answers. Transport, topology and alarm must outlive it.
std::unique_ptr<CallCheck> make_message_call_check(Transport& transport, const Topology& topology,
                                                   Alarm& alarm);

}  // namespace plexaura
