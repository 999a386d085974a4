#pragma once

#include <cstdint>

#include "core/exchange/collective.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// Collective, between steps. Checks that all ranks have the same weights, buffers and optimizer's state.
// Ranks that sum their gradients must agree in every bit; a rank that does not has a faulty memory or
// processor, and would silently spoil the training of all. Compares hashes of 64 bits, first of everything
// and, if they differ, of each tensor. If more than half of the ranks agree in a tensor, the other ranks get
// it from them, and rank 0 prints that on stderr. If no majority agrees in a tensor, throws a DeviceError on
// all ranks that names the first such tensor, and changes nothing. `step` is the number of the last step.
// `number` is this rank's number in messages.
void verify_ranks(Collective& ranks, ParameterStore& store, std::int64_t step, int number);

}  // namespace plexaura
