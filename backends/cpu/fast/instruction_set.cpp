#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/sources.h"

namespace plexaura::fast {

std::string instruction_set() {
#if PLEXAURA_NEWEST_CLONE >= 4
  if (__builtin_cpu_supports(PLEXAURA_CLONE_4)) return PLEXAURA_CLONE_4;
#endif
#if PLEXAURA_NEWEST_CLONE >= 3
  if (__builtin_cpu_supports(PLEXAURA_CLONE_3)) return PLEXAURA_CLONE_3;
#endif
  return "baseline";
}

}  // namespace plexaura::fast
