#pragma once

#include "backends/cpu/fast/pool/pool_loops.h"

namespace plexaura::fast {

// Average pooling of one row of pixels, of one sample and one block of channels.

struct AvgPoolShapes {
  PoolShapes of;
  bool count_include_pad;
};

// T is float or double.
template <class T>
struct AvgPoolLoops {
  void (*row)(const AvgPoolShapes& shapes, PoolPlace at, const T* src, T* dst);
  void (*grad_row)(const AvgPoolShapes& shapes, PoolPlace at, const T* diff_dst, T* diff_src);
};

// `lanes` is 8 or 16.
template <class T>
AvgPoolLoops<T> avg_pool_loops(std::int64_t lanes);

}  // namespace plexaura::fast
