#include "training/signals.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <mutex>

#include "core/events.h"

namespace plexaura {

namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may write only lock-free atomics");

// Ranks of a test are threads of one process.
std::mutex mutex;  // of what follows
int living = 0;
constexpr std::array numbers{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
std::array<struct sigaction, numbers.size()> previous;

void note(int number) {
  const int meant = number == SIGINT || number == SIGUSR2 ? SIGINT : SIGTERM;
  tell_event(EventKind::signal, meant);
  int none = 0;
  noted.compare_exchange_strong(none, meant);
  for (const int each : numbers) std::signal(each, SIG_DFL);
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
  for (std::size_t i = 0; i < numbers.size(); ++i) sigaction(numbers[i], &action, &previous[i]);
}

StopSignals::~StopSignals() {
  const std::lock_guard lock(mutex);
  if (--living > 0) return;
  for (std::size_t i = 0; i < numbers.size(); ++i) sigaction(numbers[i], &previous[i], nullptr);
}

int StopSignals::received() { return noted.load(); }

}  // namespace plexaura
