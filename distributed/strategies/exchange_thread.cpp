#include "distributed/strategies/exchange_thread.h"

#include <utility>

#include "core/error.h"

namespace plexaura {

ExchangeThread::ExchangeThread(std::function<void(std::size_t)> exchange)
    : exchange_(std::move(exchange)), thread_([this] { run(); }) {}

ExchangeThread::~ExchangeThread() {
  stop();
  thread_.join();
}

void ExchangeThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void ExchangeThread::begin(std::size_t bucket) {
  {
    const std::lock_guard lock(mutex_);
    if (bucket == 0 && !has_work()) begun_ = done_ = 0;
    if (bucket != begun_) throw InternalError("buckets are handed over out of order");
    begun_ = bucket + 1;
  }
  changed_.notify_all();
}

void ExchangeThread::await(std::size_t bucket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ > bucket || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

bool ExchangeThread::is_idle() {
  const std::lock_guard lock(mutex_);
  return !has_work();
}

void ExchangeThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || has_work(); });
    if (ends_) return;
    const std::size_t bucket = done_;
    std::exception_ptr failure;
    lock.unlock();
    try {
      exchange_(bucket);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure)
      failure_ = std::move(failure);
    else
      ++done_;
    changed_.notify_all();
  }
}

void give_up(std::unique_ptr<ExchangeThread>& thread, Collective& ranks) noexcept {
  if (!thread) return;
  thread->stop();
  const bool is_idle = thread->is_idle();
  if (!is_idle) ranks.interrupt_waits(true);
  thread.reset();
  if (!is_idle) ranks.interrupt_waits(false);
}

}  // namespace plexaura
