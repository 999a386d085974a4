#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/exchange/collective.h"

namespace plexaura {

// A thread that exchanges the buckets of a step, one after the other, as they are handed to it.
class ExchangeThread {
 public:
  // Which bucket comes at this place of the step; the thread waits for it where it is not among the `begun` first ones.
  using Order = std::function<std::size_t(std::size_t place, std::size_t begun)>;

  // Both are called on the thread, `exchange` with the number of a bucket.
  explicit ExchangeThread(
      std::function<void(std::size_t)> exchange,
      Order order = [](std::size_t place, std::size_t) { return place; });
  // Waits for the exchange under way.
  ~ExchangeThread();
  ExchangeThread(const ExchangeThread&) = delete;
  ExchangeThread& operator=(const ExchangeThread&) = delete;

  // The buckets of a step come in order, from 0 on, when all those of the step before have been awaited.
  void begin(std::size_t bucket);
  // Until the bucket has been exchanged. Throws what an exchange has thrown, in this step or before.
  void await(std::size_t bucket);
  // No other exchange begins.
  void stop();
  // Nothing is under way, or to be begun.
  bool is_idle();

 private:
  void run();
  void exchange_next(std::unique_lock<std::mutex>& lock);
  bool has_work() const { return place_ < is_done_.size() && !failure_; }

  std::function<void(std::size_t)> exchange_;
  Order order_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> is_done_;  // of this step: the buckets that have begun
  std::size_t place_ = 0;      // how many of them are
  std::exception_ptr failure_;
  bool ends_ = false;
  std::thread thread_;
};

// Ends the thread, if there is one, without waiting for other ranks. `ranks`: on which it makes its calls.
void give_up(std::unique_ptr<ExchangeThread>& thread, Collective& ranks) noexcept;

}  // namespace plexaura
