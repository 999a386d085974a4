#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace plexaura {

// What the arithmetic of a thread does with denormal numbers: it keeps them, or takes and gives zero for them, since they
// may cost a hundred times as much. A thread begins with what the thread that starts it does.
enum class Denormals { kept, flushed };

#if defined(__SSE__)
inline constexpr unsigned flushing_bits = 0x8040;  // FTZ | DAZ

inline Denormals denormals_here() {
  return (_mm_getcsr() & flushing_bits) == flushing_bits ? Denormals::flushed : Denormals::kept;
}

// Until the scope ends, this thread does with denormal numbers what is wanted. Then it does what it did before.
class DenormalScope {
 public:
  explicit DenormalScope(Denormals wanted) : before_(_mm_getcsr() & flushing_bits) {
    set(wanted == Denormals::flushed ? flushing_bits : 0);
  }
  ~DenormalScope() { set(before_); }
  DenormalScope(const DenormalScope&) = delete;
  DenormalScope& operator=(const DenormalScope&) = delete;

 private:
  static void set(unsigned bits) {
    const unsigned now = _mm_getcsr();
    if ((now & flushing_bits) != bits) _mm_setcsr((now & ~flushing_bits) | bits);
  }

  unsigned before_;
};
#else
// On other processors denormals are always kept.
inline Denormals denormals_here() { return Denormals::kept; }

class DenormalScope {
 public:
  explicit DenormalScope(Denormals) {}
};
#endif

// The OpenMP threads that the calling thread has or starts flush from now on, as a library's kernels expect. To be called
// where the calling thread flushes. Costs next to nothing the second time.
void flush_in_workers();

}  // namespace plexaura
