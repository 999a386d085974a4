#include "training/loop/signals.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <mutex>

#include "core/base/events.h"
#include "training/files/command_output.h"

namespace plexaura {

namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may write only lock-free atomics");

// In tests, ranks are threads of one process, so several objects may live at once.
std::mutex mutex;  // guards `living` and `previous`
int living = 0;
constexpr std::array numbers{SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGXCPU};
std::array<struct sigaction, numbers.size()> previous;

int meant_by(int number) { return number == SIGINT || number == SIGUSR2 ? SIGINT : SIGTERM; }

void end_as_meant(int number) {
  CommandOutput::end_all();
  const int meant = meant_by(number);
  std::signal(meant, SIG_DFL);
  std::raise(meant);
}

void note(int number) {
  const int meant = meant_by(number);
  report_event(EventKind::signal, meant);
  int none = 0;
  noted.compare_exchange_strong(none, meant);
  const bool is_repeated_by_system = number == SIGHUP || number == SIGXCPU;
  if (!is_repeated_by_system) std::signal(number, end_as_meant);
}

// True for a SIGHUP that is ignored. nohup starts programs in this way.
bool is_left_alone(int number) {
  struct sigaction now {};
  return number == SIGHUP && sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
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
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    sigaction(numbers[i], nullptr, &previous[i]);
    if (!is_left_alone(numbers[i])) sigaction(numbers[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  const std::lock_guard lock(mutex);
  if (--living > 0) return;
  for (std::size_t i = 0; i < numbers.size(); ++i) sigaction(numbers[i], &previous[i], nullptr);
}

void StopSignals::end_process() {
  for (const int number : numbers)
    if (meant_by(number) != number && !is_left_alone(number)) std::signal(number, end_as_meant);
}

int StopSignals::received() { return noted.load(); }

}  // namespace plexaura
