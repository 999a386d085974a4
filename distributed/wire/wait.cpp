#include "distributed/wire/wait.h"

#include <thread>

namespace plexaura {
namespace {

constexpr int spins_at_first = 256;
constexpr int yields_then = 200;
constexpr int naps_after_that = 20'000;  // number of short naps, which take at least a second together
constexpr std::chrono::microseconds nap{50};
constexpr std::chrono::milliseconds long_nap{1};  // nap in waits that may last hours, such as that of a spare
// The pause between two looks for other events. It is not shorter, because a look yields the core too, which
// may cost a time slice.
constexpr std::chrono::milliseconds between_looks{20};

void relax_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Wait::Wait(double deadline_seconds)
    : patience_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline_seconds))),
      look_at_(now() + between_looks) {}

bool Wait::is_time_to_look() {
  const Clock::time_point time = now();
  if (time < look_at_) return false;
  look_at_ = time + between_looks;
  return true;
}

void Wait::pause() {
  ++pauses_;
  if (pauses_ <= spins_at_first) {
    relax_core();
  } else if (pauses_ <= spins_at_first + yields_then) {
    std::this_thread::yield();
  } else if (pauses_ <= spins_at_first + yields_then + naps_after_that) {
    std::this_thread::sleep_for(nap);
  } else {
    pauses_ = spins_at_first + yields_then + naps_after_that;
    std::this_thread::sleep_for(long_nap);
  }
}

void Wait::progressed() {
  end_ = now() + patience_;
  pauses_ = 0;
}

}  // namespace plexaura
