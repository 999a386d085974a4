#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// An event of a strategy that does work in a thread or a stream of its own. It passes when that work is done,
// or has failed. Any thread may call its functions.
class PLEXAURA_API ExchangeEvent final : public Event {
 public:
  explicit ExchangeEvent(std::unique_ptr<Event> event) : event_(std::move(event)) {}

  void record(Stream stream) override;
  void signal() override { end(nullptr); }
  void reset() override;
  void hold(Stream stream) override { event_->hold(stream); }
  bool passed() const override { return event_->passed(); }
  // Waits for the event. Throws the error with which the event has failed, until it is recorded or reset again.
  void wait() override;

  // Lets the event pass as failed. Does nothing if it was signalled, recorded or failed already.
  void fail(std::exception_ptr failure) { end(std::move(failure)); }
  // Waits until the event is signalled, recorded or failed, but at most this number of seconds. Returns false
  // if none of this has happened.
  bool ends_within(double seconds);

 private:
  enum class State { open, recorded, ended };
  void end(std::exception_ptr failure);

  std::unique_ptr<Event> event_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::open;
  std::exception_ptr failure_;
};

}  // namespace plexaura
