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

// A thread that exchanges the buckets of a step one after the other, after they were passed to begin().
class ExchangeThread {
 public:
  // Returns the bucket that is exchanged as number `place` in a step. If it is not among the first `begun`
  // buckets, the thread waits for it.
  using Order = std::function<std::size_t(std::size_t place, std::size_t begun)>;

  // `exchange` and `order` are called on the thread. `exchange` gets the number of a bucket.
  explicit ExchangeThread(
      std::function<void(std::size_t)> exchange,
      Order order = [](std::size_t place, std::size_t) { return place; });
  // Waits until the present exchange has ended.
  ~ExchangeThread();
  ExchangeThread(const ExchangeThread&) = delete;
  ExchangeThread& operator=(const ExchangeThread&) = delete;

  // Passes a bucket to the thread. The buckets of a step are passed in order, beginning with 0, after all
  // buckets of the step before were awaited.
  void begin(std::size_t bucket);
  // Waits until the bucket was exchanged. Rethrows an error of an exchange, in this step or before.
  void await(std::size_t bucket);
  // Prevents further exchanges. Does not wait.
  void stop();
  // True if no exchange is running or waits to begin.
  bool is_idle();

 private:
  void run();
  void exchange_next(std::unique_lock<std::mutex>& lock);
  bool has_work() const { return place_ < is_done_.size() && !failure_; }

  std::function<void(std::size_t)> exchange_;
  Order order_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // For each bucket of this step that was passed to begin(): true if it was exchanged.
  std::vector<bool> is_done_;
  std::size_t place_ = 0;  // number of buckets of this step that were exchanged
  std::exception_ptr failure_;
  bool ends_ = false;
  std::thread thread_;
};

// Ends the thread, if there is one, without waiting for other ranks. `ranks` is the collective on which the
// thread makes its calls.
void give_up(std::unique_ptr<ExchangeThread>& thread, Collective& ranks) noexcept;

}  // namespace plexaura
