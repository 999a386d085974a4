#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/engine/device.h"

namespace plexaura::cuda {

// A recording of what was captured, whose parts it takes. With `branches`, and where kernels can run side by side, it holds
// two graphs of the same results, of which the faster one is taken once both were timed.
std::unique_ptr<Recording> make_recording(std::shared_ptr<Device> device, bool branches);

}  // namespace plexaura::cuda
