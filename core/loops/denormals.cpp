#include "core/loops/denormals.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace plexaura {

void flush_in_workers() {
#if defined(_OPENMP) && defined(__SSE__)
  thread_local int flushing = 1;
  if (omp_get_max_threads() <= flushing) return;
  flushing = omp_get_max_threads();
#pragma omp parallel
  _mm_setcsr(_mm_getcsr() | flushing_bits);
#endif
}

}  // namespace plexaura
