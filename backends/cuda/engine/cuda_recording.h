#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/engine/device.h"

namespace plexaura::cuda {

// Makes a recording of the parts that the device has captured. With `branches`, and if kernels can run side
// by side, the recording has two graphs with the same results. It times both and then keeps the faster one.
std::unique_ptr<Recording> make_recording(std::shared_ptr<Device> device, bool branches);

}  // namespace plexaura::cuda
