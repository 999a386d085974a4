#pragma once

#include <cstring>

#include "backends/cpu/fast/clones.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace plexaura::fast {

// A vector of `count` floats: the compiler makes of it as many registers as the processor needs.
template <int count>
struct Lanes {
  typedef float Vector __attribute__((vector_size(count * sizeof(float))));
};
template <int count>
using Vector = typename Lanes<count>::Vector;

template <int count>
PLEXAURA_INLINE void load(Vector<count>& to, const float* from) {
  std::memcpy(&to, from, sizeof(to));
}

template <int count>
PLEXAURA_INLINE void store(float* to, const Vector<count>& from) {
  std::memcpy(to, &from, sizeof(from));
}

// Past the caches, for what is too large to be found there again. `to` is aligned to 16 bytes.
template <int count>
PLEXAURA_INLINE void stream(float* to, const Vector<count>& from) {
#if defined(__x86_64__)
  for (int part = 0; part < count; part += 4) {
    __m128 four;
    std::memcpy(&four, reinterpret_cast<const float*>(&from) + part, sizeof(four));
    _mm_stream_ps(to + part, four);
  }
#else
  store<count>(to, from);
#endif
}

// Orders streamed stores before what other threads read.
inline void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace plexaura::fast
