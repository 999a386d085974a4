#pragma once

#include <cstdint>
#include <string>

#include "core/device/described_backend.h"
#include "training/trainer.h"

namespace plexaura {

// What a step of training enqueues on a device that need not be there. The trainer was made for it.
WorkAccount account_of_step(DescribedBackend& device, Trainer& trainer);

// A table with a line for each kind of work of a step of so many samples, and the least time that the device needs: the sum
// over all calls, of which each takes as long as its bytes or its operations, whichever is longer.
std::string text_of(const WorkAccount& account, const DescribedBackend& device, std::int64_t samples);

}  // namespace plexaura
