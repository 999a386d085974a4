#pragma once

#include "backends/cpu/fast/clones.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

// Loops over the lanes of a vector of channels are written out as plain loops over small arrays: the compiler
// keeps those in registers, of whatever width the processor has. (Its vector types would be split for the
// oldest processor before clones are made.)

namespace plexaura::fast {

// Writes past the caches what is too large to be found there again. `to` is aligned to 16 bytes, `count` a
// multiple of 4.
template <int count>
PLEXAURA_INLINE void stream(float* to, const float* from) {
#if defined(__x86_64__)
  for (int part = 0; part < count; part += 4) _mm_stream_ps(to + part, _mm_loadu_ps(from + part));
#else
  for (int lane = 0; lane < count; ++lane) to[lane] = from[lane];
#endif
}

// Orders streamed stores before what other threads read.
inline void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace plexaura::fast
