#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/choices/rank_choice.h"
#include "app/options/run_config.h"
#include "core/device/backend.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// Returns the algorithm by which the communicator sums on the hosts.
std::string algorithm_of_hosts(const RunOptions& options);

// True if the options let devices sum the gradients: there are several ranks, the strategy is `allreduce`
// without compression, the overlap is `auto`, the algorithm is `device` or `auto`, and the death of a rank ends
// the run. Returns the same on all ranks.
bool may_sum_on_devices(const Communicator& exchange, const RunOptions& options);

struct DeviceExchange {
  std::unique_ptr<Backend> backend = {};    // null: the backend is not opened, because devices may not sum
  std::unique_ptr<Strategy> strategy = {};  // null: the hosts sum the gradients
  ChoiceReport report = {};
};

using OpenBackend = std::function<std::unique_ptr<Backend>()>;

// Lets the devices sum gradients if they can, and then sets `options.algorithm` to `device`. Throws UserError
// on all ranks if may_sum_on_devices() is true, the YAML file demands it, and the devices cannot. Collective.
DeviceExchange decide_device_exchange(Communicator& exchange, const OpenBackend& open, RunOptions& options);

}  // namespace plexaura
