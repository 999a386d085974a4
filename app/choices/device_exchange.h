#pragma once

#include <memory>
#include <string>

#include "app/choices/told_choice.h"
#include "app/options/run_config.h"
#include "core/device/backend.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// By which the communicator sums.
std::string algorithm_of_hosts(const RunOptions& options);

// Whether devices may sum the gradients, if the backend lets them: `allreduce` alone, whose overlap the file leaves open, and whose
// algorithm it leaves open or asks for, and where a rank that dies ends the run. The same on all ranks.
bool may_sum_on_devices(const Communicator& exchange, const RunOptions& options);

struct DeviceExchange {
  std::unique_ptr<Strategy> strategy = {};  // null: gradients cross through the memory of hosts
  ToldChoice told = {};
};

// Has the devices sum where they can, and then says so in the options. UserError on all ranks where they cannot, and the file asks for it. Collective.
DeviceExchange settle_device_exchange(Communicator& exchange, Backend& backend, RunOptions& options);

}  // namespace plexaura
