#pragma once

#include <algorithm>
#include <doctest/doctest.h>

#include "backends/registry.h"

namespace plexaura::testing {

// Returns true if the simulated CUDA exists. Otherwise prints that the test is skipped.
inline bool has_simulated_cuda() {
  const auto known = known_backends();
  const bool has = std::ranges::find(known, "simulated_cuda") != known.end();
  if (!has) MESSAGE("skipped: builds with sanitizers have no simulated CUDA");
  return has;
}

}  // namespace plexaura::testing
