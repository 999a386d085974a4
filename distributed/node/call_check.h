#pragma once

#include <memory>

#include "distributed/failure/alarm.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/topology.h"
#include "distributed/wire/transport.h"

namespace plexaura {

// The beginning of every collective call: all ranks compare the calls that they are about to make, and
// continue only if these are the same.
class CallCheck {
 public:
  virtual ~CallCheck();

  // Waits for all ranks, and returns the pace that rank 0 passes. Throws an Error (see speaks()) that names
  // the ranks that did not come in time, or two ranks that make different calls. Memory that a rank has
  // written before is visible to all ranks of its node afterwards.
  virtual std::uint8_t meet(CallSignature mine, double deadline_seconds) = 0;
};

// Returns a check by messages: rank 0 receives the call of each rank, and answers. All arguments must outlive
// it.
std::unique_ptr<CallCheck> make_message_call_check(Transport& transport, const Topology& topology,
                                                   Alarm& alarm);

}  // namespace plexaura
