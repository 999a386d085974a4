#pragma once

#include "core/compile/compile.h"
#include "core/scan/scan_op.h"

namespace plexaura {

// Compiles the body of a scan, by the same passes as any program. `query` is about the scan's node: outputs
// that nobody reads are not computed. The options may set only `optimise` and `tuner`. Throws UserError if
// the backend has no kernel for an op of the body, since the host takes no part in a loop.
LoopWork compile_loop(const Scan& scan, const RegionQuery& query, Backend& backend,
                      const CompileOptions& options);

// Returns the candidate of a loop, which has no kernel. It lists the operands that the loop reads. All layouts are
// row-major, so that elements along axis 0 are adjacent.
Candidate candidate_of(const LoopWork& loop, const RegionQuery& query);

}  // namespace plexaura
