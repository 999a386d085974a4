#include "backends/cpu/denormals.h"

namespace plexaura {

void flush_denormals() {
  if (flushes_denormals()) return;
#ifdef _OPENMP
#pragma omp parallel
#endif
  flush_denormals_here();
}

}  // namespace plexaura
