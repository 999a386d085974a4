#pragma once

#include <memory>
#include <span>

#include "core/base/export.h"
#include "core/compile/program.h"

namespace plexaura {

// Returns one program that does the work of `first` and then that of `second`. Both parts use one step block
// and one arena, one after the other. Both must be compiled for the same placement and backend. Throws
// InternalError if one has a prologue or outputs to be read, or if `second` has inputs.
PLEXAURA_API std::shared_ptr<const Program> link(const Program& first, const Program& second);

// Returns a program for the micro-batches of a step after the first one. It computes the same gradients as
// `gradients`, and adds each bucket to the gradients that are already in the arena: as soon as the bucket is
// complete or, if the sums need memory in the arena, at the end. `strict`: see CompileOptions.
PLEXAURA_API std::shared_ptr<const Program> add_to_gradients(const Program& gradients,
                                                             std::span<const Bucket> buckets,
                                                             Backend& backend, bool strict = false);

}  // namespace plexaura
