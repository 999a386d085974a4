#pragma once

#include "backends/cpu/fast/clones.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

// Loops over the lanes of a vector of channels are plain loops over small arrays. The compiler keeps these in
// registers of the width that the processor has. Its vector types do not help: they would be split for the
// oldest processor before the clones are made.

namespace plexaura::fast {

// Writes values to memory without keeping them in the caches. Meant for more values than the caches can keep. `to` is
// aligned to 16 bytes, and `count` is a multiple of 4.
template <int count>
PLEXAURA_INLINE void stream(float* to, const float* from) {
#if defined(__x86_64__)
  for (int part = 0; part < count; part += 4) _mm_stream_ps(to + part, _mm_loadu_ps(from + part));
#else
  for (int lane = 0; lane < count; ++lane) to[lane] = from[lane];
#endif
}

// Makes streamed stores visible before later stores, so that other threads read them.
inline void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace plexaura::fast
