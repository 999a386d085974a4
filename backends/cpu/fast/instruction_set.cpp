#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/sources.h"

namespace plexaura::fast {

std::string instruction_set() {
#if PLEXAURA_NEWEST_CLONE >= 4
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
#endif
#if PLEXAURA_NEWEST_CLONE >= 3
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
#endif
  return "baseline";
}

}  // namespace plexaura::fast
