#include "training/signals.h"

#include <atomic>
#include <csignal>
#include <mutex>

#include "core/events.h"

namespace plexaura {

namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may write only lock-free atomics");

// Ranks of a test are threads of one process.
std::mutex mutex;  // of what follows
int living = 0;
struct sigaction previous_interrupt;
struct sigaction previous_terminate;

void note(int signal) {
  tell_event(EventKind::signal, signal);
  int none = 0;
  noted.compare_exchange_strong(none, signal);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  const std::lock_guard lock(mutex);
  if (living++ > 0) return;
  noted.store(0);
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_interrupt);
  sigaction(SIGTERM, &action, &previous_terminate);
}

StopSignals::~StopSignals() {
  const std::lock_guard lock(mutex);
  if (--living > 0) return;
  sigaction(SIGINT, &previous_interrupt, nullptr);
  sigaction(SIGTERM, &previous_terminate, nullptr);
}

int StopSignals::received() { return noted.load(); }

}  // namespace plexaura
