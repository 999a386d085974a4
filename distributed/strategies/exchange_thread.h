#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/ranks/collective.h"

namespace plexaura {

// A thread that exchanges the buckets of a step, one after the other, in the order in which they are handed to it.
class ExchangeThread {
 public:
  // Called on the thread, with the number of a bucket.
  explicit ExchangeThread(std::function<void(std::size_t)> exchange);
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
  bool has_work() const { return done_ < begun_ && !failure_; }

  std::function<void(std::size_t)> exchange_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t begun_ = 0;  // buckets of this step
  std::size_t done_ = 0;
  std::exception_ptr failure_;
  bool ends_ = false;
  std::thread thread_;
};

// Ends the thread, if there is one, without waiting for other ranks. `ranks`: on which it makes its calls.
void give_up(std::unique_ptr<ExchangeThread>& thread, Collective& ranks) noexcept;

}  // namespace plexaura
