#pragma once

#include <vector>

#include "core/vm/vm.h"

namespace plexaura::testing {

// Runs the VM, and calls `work` with the id of each host point.
template <class Work>
void run_with_points(VM& vm, const std::vector<Feed>& feeds, Work&& work) {
  VmRun run(vm, feeds);
  while (const auto point = run.next()) work(*point);
}

}  // namespace plexaura::testing
