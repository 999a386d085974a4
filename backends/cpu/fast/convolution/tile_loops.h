#pragma once

#include "backends/cpu/fast/clones.h"
#include "core/loops/gemm.h"

namespace plexaura::fast {

// Does the same as portable::add_tile(), but adds up the terms one by one.
PLEXAURA_CLONED void add_tile(const portable::TileFactors<double>& factors, double* sum);

}  // namespace plexaura::fast
