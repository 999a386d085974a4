#include "distributed/group/wait.h"

#include <thread>

namespace plexaura {
namespace {

constexpr int spins_at_first = 256;
constexpr int yields_then = 200;
constexpr std::chrono::microseconds nap{50};

void relax_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Wait::Wait(double deadline_seconds)
    : patience_(
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline_seconds))) {}

void Wait::pause() {
  ++pauses_;
  if (pauses_ <= spins_at_first) {
    relax_core();
  } else if (pauses_ <= spins_at_first + yields_then) {
    std::this_thread::yield();
  } else {
    pauses_ = spins_at_first + yields_then;
    std::this_thread::sleep_for(nap);
  }
}

void Wait::progressed() {
  end_ = now() + patience_;
  pauses_ = 0;
}

}  // namespace plexaura
