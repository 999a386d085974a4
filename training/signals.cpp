#include "training/signals.h"

#include <atomic>
#include <csignal>

#include "core/events.h"

namespace plexaura {

namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may write only lock-free atomics");

std::atomic<int> living{0};  // ranks of a test are threads of one process
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
  if (living.fetch_add(1) > 0) return;
  noted.store(0);
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_interrupt);
  sigaction(SIGTERM, &action, &previous_terminate);
}

StopSignals::~StopSignals() {
  if (living.fetch_sub(1) > 1) return;
  sigaction(SIGINT, &previous_interrupt, nullptr);
  sigaction(SIGTERM, &previous_terminate, nullptr);
}

int StopSignals::received() { return noted.load(); }

}  // namespace plexaura
