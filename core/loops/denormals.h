#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace plexaura {

// The treatment of denormal numbers by the arithmetic of a thread: it keeps them, or replaces them by zero,
// since they may take a hundred times as long. A new thread starts with the setting of the thread that
// started it.
enum class Denormals { kept, flushed };

#if defined(__SSE__)
inline constexpr unsigned flushing_bits = 0x8040;  // the bits FTZ and DAZ of the register MXCSR

inline Denormals denormals_here() {
  return (_mm_getcsr() & flushing_bits) == flushing_bits ? Denormals::flushed : Denormals::kept;
}

// Sets how this thread treats denormals, and restores the earlier setting at its end.
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
// On processors other than x86-64, denormals are always kept.
inline Denormals denormals_here() { return Denormals::kept; }

class DenormalScope {
 public:
  explicit DenormalScope(Denormals) {}
};
#endif

// Makes the OpenMP threads that the calling thread has or starts flush denormals from now on, as a library's
// kernels expect. The calling thread must flush them already. A repeated call costs almost nothing.
void flush_in_workers();

}  // namespace plexaura
