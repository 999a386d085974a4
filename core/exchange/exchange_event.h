#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// An event of a strategy: it is passed when what the strategy does in a thread or a stream of its own is done, or
// has failed. All of it from any thread.
class PLEXAURA_API ExchangeEvent final : public Event {
 public:
  explicit ExchangeEvent(std::unique_ptr<Event> event) : event_(std::move(event)) {}

  void record(Stream stream) override;
  void signal() override { settle(nullptr); }
  void reset() override;
  void hold(Stream stream) override { event_->hold(stream); }
  bool passed() const override { return event_->passed(); }
  // Throws what it has failed with, until it starts anew.
  void wait() override;

  // Passed now, as failed. Where it has passed already nothing changes.
  void fail(std::exception_ptr failure) { settle(std::move(failure)); }
  // Whether somebody has signalled, recorded or failed it, within so many seconds.
  bool settles_within(double seconds);

 private:
  enum class State { open, recorded, settled };
  void settle(std::exception_ptr failure);

  std::unique_ptr<Event> event_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::open;
  std::exception_ptr failure_;
};

}  // namespace plexaura
