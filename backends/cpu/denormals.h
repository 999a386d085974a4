#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace plexaura {

// Whether this thread takes and gives zero for denormal numbers, which would cost a hundred times as much. A
// thread inherits it from the one that starts it.
inline bool flushes_denormals() {
#if defined(__SSE__)
  constexpr unsigned both = 0x8040;  // FTZ | DAZ
  return (_mm_getcsr() & both) == both;
#else
  return true;
#endif
}

inline void flush_denormals_here() {
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040U);
#endif
}

// In this thread and in the OpenMP threads that it has or starts. Costs next to nothing the second time.
void flush_denormals();

}  // namespace plexaura
