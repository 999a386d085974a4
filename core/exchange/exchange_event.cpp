#include "core/exchange/exchange_event.h"

#include <chrono>
#include <cstdint>
#include <utility>

namespace plexaura {

namespace {

#if defined(__SANITIZE_THREAD__)
// The thread sanitizer of g++ 12 does not support waits on the steady clock.
using Clock = std::chrono::system_clock;
#else
using Clock = std::chrono::steady_clock;
#endif

}  // namespace

void ExchangeEvent::record(Stream stream) {
  {
    const std::lock_guard lock(mutex_);
    state_ = State::recorded;
    failure_ = nullptr;
    event_->record(stream);
  }
  changed_.notify_all();
}

void ExchangeEvent::reset() {
  const std::lock_guard lock(mutex_);
  state_ = State::open;
  failure_ = nullptr;
  event_->reset();
}

void ExchangeEvent::end(std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure && state_ != State::open) return;
    if (!failure_) failure_ = std::move(failure);
    state_ = State::ended;
    event_->signal();
  }
  changed_.notify_all();
}

void ExchangeEvent::wait() {
  event_->wait();
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

bool ExchangeEvent::ends_within(double seconds) {
  const auto patience = std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, Clock::now() + patience, [&] { return state_ != State::open; });
}

}  // namespace plexaura
