#pragma once

#include <cstdint>

#include "core/exchange/collective.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// Ranks that sum their gradients hold the same weights, buffers and optimizer's state, bit for bit. A rank that does
// not has a faulty memory or processor, and would spoil the training of all without a word. All ranks together, between
// steps: compares hashes of 64 bits, and where they differ of each tensor. A tensor in which more than half of the
// ranks agree is given to the others, which rank 0 says on the standard error output. Throws a DeviceError on all
// ranks, which names the first tensor in which no such majority agrees; nothing is changed then. `step` is the last one,
// and `number` what people call this rank.
void verify_ranks(Collective& ranks, ParameterStore& store, std::int64_t step, int number);

}  // namespace plexaura
