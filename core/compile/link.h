#pragma once

#include <memory>
#include <span>

#include "core/base/export.h"
#include "core/compile/program.h"

namespace plexaura {

// One program that does what `first` does and then what `second` does: with one step block, and one arena that
// the second uses after the first. Both were compiled for one placement and one backend. InternalError where
// one has a prologue or outputs to be read, or the second has inputs.
PLEXAURA_API std::shared_ptr<const Program> link(const Program& first, const Program& second);

// Returns a program for micro-batches after the first of a step. It computes the same gradients as `gradients` and adds
// each bucket to the present gradients as soon as the bucket is complete. `strict`: see CompileOptions.
PLEXAURA_API std::shared_ptr<const Program> add_to_gradients(const Program& gradients,
                                                             std::span<const Bucket> buckets,
                                                             Backend& backend, bool strict = false);

}  // namespace plexaura
