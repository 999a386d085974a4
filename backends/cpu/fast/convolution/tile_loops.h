#pragma once

#include "core/loops/gemm.h"

namespace plexaura::fast {

// Does the same as portable::add_tile(), but adds up the terms one by one.
void add_tile(const portable::TileFactors<double>& factors, double* sum);

}  // namespace plexaura::fast
