#pragma once

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// Returns how the host computes a region of one op for which the backend has no kernel: from and to row-major
// values. `strict`: see CompileOptions. Throws UserError that names the op if the host cannot compute it, if
// `strict` forbids it, or if the backend has kernels for the op that only a measurement could choose.
PLEXAURA_API Candidate host_candidate(const RegionQuery& query, const Backend& backend, bool strict);

}  // namespace plexaura
