#include "distributed/group/wait.h"

#include <thread>

namespace plexaura {
namespace {

constexpr int kSpins = 256;
constexpr int kYields = 200;
constexpr std::chrono::microseconds kNap{50};

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
  if (pauses_ <= kSpins) {
    relax_core();
  } else if (pauses_ <= kSpins + kYields) {
    std::this_thread::yield();
  } else {
    pauses_ = kSpins + kYields;
    std::this_thread::sleep_for(kNap);
  }
}

void Wait::progressed() {
  end_ = now() + patience_;
  pauses_ = 0;
}

}  // namespace plexaura
