#pragma once

#include "backends/cpu/fast/pool/pool_loops.h"

namespace plexaura::fast {

// Average pooling of one row of pixels, of one sample and one block of channels.

struct AvgPoolShapes {
  PoolShapes of;
  bool count_include_pad;
};

void avg_pool_row(const AvgPoolShapes& shapes, PoolPlace at, const float* src, float* dst);
void avg_pool_grad_row(const AvgPoolShapes& shapes, PoolPlace at, const float* diff_dst, float* diff_src);

}  // namespace plexaura::fast
