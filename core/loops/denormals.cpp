#include "core/loops/denormals.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace plexaura {

void flush_in_workers() {
#ifdef _OPENMP
  thread_local int flushing = 1;
  if (omp_get_max_threads() <= flushing) return;
  flushing = omp_get_max_threads();
#pragma omp parallel
  float_control::write(float_control::read() | float_control::flushing_bits);
#endif
}

}  // namespace plexaura
