#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/exchange/collective.h"
#include "training/data/sampler.h"
#include "training/programs/programs.h"

namespace plexaura {

// Returns the bytes of parameters, gradients and optimizer state, which do not depend on the batch. `adds` is
// true if a step has several micro-batches, which need a second arena of gradients.
std::size_t parameter_bytes(const Placement& placement, std::int64_t states, bool adds);

// Returns the bytes of the inputs of a model: two slots, one of which may be written while the other is read.
std::size_t input_bytes(const Graph& model);

// Returns the bytes of `memory` that are left for intermediate values; 0 if `others` need more.
std::size_t arena_limit(std::int64_t memory, std::size_t others);

// Returns the error for a step that cannot be made to need at most ProgramOptions::memory bytes. `others`:
// the bytes that the step needs in addition to its intermediate values.
UserError exceeds_memory(const MemoryLimitError& error, std::size_t others, const BatchPlan& plan,
                         std::int64_t memory);

// Collective. Returns the number of micro-batches with which a step of rank 0 needs at most
// ProgramOptions::memory bytes: plan.micro_batches, or a product of it with 2, 4, 8 and so on. All ranks get
// the same number. Throws UserError if no number suffices, and if plan.micro_batches does not and the model
// takes statistics over a micro-batch: then other micro-batches would train another model, and the message
// names the number to set.
std::int64_t micro_batches_within_memory(const ModelBuilder& model, std::span<const Field> fields,
                                         const ParameterStore& store, Backend& backend,
                                         Collective& collective, const BatchPlan& plan,
                                         const ProgramOptions& options);

}  // namespace plexaura
