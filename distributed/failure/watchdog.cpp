#include "distributed/failure/watchdog.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds to_be_rescued{2};

}  // namespace

Watchdog::Watchdog(std::string who, Alarm alarm)
    : who_(std::move(who)),
      alarm_(std::move(alarm)),
      wake_descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_descriptor_ < 0)
    throw DeviceError("the watchdog cannot open an event descriptor: too many open files");
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  close(wake_descriptor_);
}

void Watchdog::rename(std::string who) {
  const std::lock_guard lock(mutex_);
  who_ = std::move(who);
}

void Watchdog::set_rescue(Rescue rescue) {
  const std::lock_guard lock(mutex_);
  rescue_ = std::move(rescue);
}

void Watchdog::end_process(const std::string& sentence) {
  report_event(EventKind::error, 1, sentence);
  const std::string line = sentence + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
  _exit(1);
}

Watchdog::Guard::Guard(Watchdog& watchdog, std::string what, double deadline_seconds)
    : watchdog_(watchdog),
      what_(std::move(what)),
      call_(watchdog.begin(what_, deadline_seconds)),
      span_(EventKind::wait, what_) {}

std::list<WatchedCall>::iterator Watchdog::begin(std::string what, double deadline_seconds) {
  const auto begin = Clock::now();
  const auto patience =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline_seconds));
  std::list<WatchedCall>::iterator call;
  {
    const std::lock_guard lock(mutex_);
    call = calls_.insert(calls_.end(), {std::move(what), begin, begin + patience});
    if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  }
  wake();
  return call;
}

Watchdog::Guard::~Guard() {
  const std::lock_guard lock(watchdog_.mutex_);
  watchdog_.calls_.erase(call_);
}

void Watchdog::watch() {
  for (;;) {
    int timeout = -1;
    std::string sentence;
    Rescue rescue;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      sentence = overdue();
      rescue = take_rescue();
      timeout = milliseconds_to_next();
    }
    if (rescue) {
      rescue();
      continue;
    }
    if (!sentence.empty()) {
      alarm_(sentence);
      return;
    }
    pollfd wakening{wake_descriptor_, POLLIN, 0};
    poll(&wakening, 1, timeout);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto cleared = read(wake_descriptor_, &count, sizeof count);
  }
}

int Watchdog::milliseconds_to_next() const {
  if (calls_.empty()) return -1;
  const auto earlier = [](const WatchedCall& a, const WatchedCall& b) { return a.deadline < b.deadline; };
  const auto remaining = std::min_element(calls_.begin(), calls_.end(), earlier)->deadline - Clock::now();
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(remaining).count();
  return static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 60'000));
}

std::string Watchdog::overdue() {
  const auto now = Clock::now();
  for (const WatchedCall& call : calls_) {
    if (now < call.deadline) continue;
    const double waited = std::chrono::duration<double>(now - call.begin).count();
    return fmt::format(
        "{} has waited {:.1f} s in {}: another rank has died, is stopped or is stuck; look for its output",
        who_, waited, call.what);
  }
  return {};
}

Watchdog::Rescue Watchdog::take_rescue() {
  const auto now = Clock::now();
  bool helps = false;
  for (WatchedCall& call : calls_) {
    if (now < call.deadline || call.is_helped || !rescue_) continue;
    call.is_helped = helps = true;
    call.deadline = now + to_be_rescued;
  }
  return helps ? rescue_ : Rescue();
}

void Watchdog::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_descriptor_, &one, sizeof one);
}

}  // namespace plexaura
