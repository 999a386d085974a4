#pragma once

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace plexaura {

// The treatment of denormal numbers by the arithmetic of a thread: it keeps them, or replaces them by zero,
// since they may take a hundred times as long. A new thread starts with the setting of the thread that
// started it.
enum class Denormals { kept, flushed };

// The register of a thread that controls its floating-point arithmetic. It flushes denormals if all of
// `flushing_bits` are set.
namespace float_control {
#if defined(__SSE__)
inline constexpr std::uint64_t flushing_bits = 0x8040;  // the bits FTZ and DAZ of the register MXCSR
inline std::uint64_t read() { return _mm_getcsr(); }
inline void write(std::uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
inline constexpr std::uint64_t flushing_bits = std::uint64_t{1} << 24;  // the bit FZ of the register FPCR
inline std::uint64_t read() {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits) : : "memory");
  return bits;
}
inline void write(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits) : "memory"); }
#else
// On other processors, denormals are always kept.
inline constexpr std::uint64_t flushing_bits = 1;
inline std::uint64_t read() { return 0; }
inline void write(std::uint64_t) {}
#endif
}  // namespace float_control

inline Denormals denormals_here() {
  return (float_control::read() & float_control::flushing_bits) == float_control::flushing_bits
             ? Denormals::flushed
             : Denormals::kept;
}

// Sets how this thread treats denormals, and restores the earlier setting at its end.
class DenormalScope {
 public:
  explicit DenormalScope(Denormals wanted) : before_(float_control::read() & float_control::flushing_bits) {
    set(wanted == Denormals::flushed ? float_control::flushing_bits : 0);
  }
  ~DenormalScope() { set(before_); }
  DenormalScope(const DenormalScope&) = delete;
  DenormalScope& operator=(const DenormalScope&) = delete;

 private:
  static void set(std::uint64_t bits) {
    const std::uint64_t now = float_control::read();
    if ((now & float_control::flushing_bits) != bits)
      float_control::write((now & ~float_control::flushing_bits) | bits);
  }

  std::uint64_t before_;
};

// Makes the OpenMP threads that the calling thread has or starts flush denormals from now on, as a library's
// kernels expect. The calling thread must flush them already. A repeated call costs almost nothing.
void flush_in_workers();

}  // namespace plexaura
