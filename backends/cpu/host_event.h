#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// The state that a HostEvent shares with the streams that it holds.
class HostEventState {
 public:
  void set(bool passed) {
    passed_.store(passed, std::memory_order_release);
    if (passed) passed_.notify_all();
  }
  bool passed() const { return passed_.load(std::memory_order_acquire); }
  void wait() const { passed_.wait(false, std::memory_order_acquire); }

 private:
  std::atomic<bool> passed_ = false;
};

// The two streams of a device that is the host itself. Work is done in the call that enqueues it. Only an
// event that holds a stream delays work: the next work on that stream waits for the event.
class HostStreams {
 public:
  void hold(Stream stream, std::shared_ptr<HostEventState> event);
  // Waits for the events that hold the stream. Called before any work on it. Allocates nothing.
  void drain(Stream stream) {
    if (!held_by(stream).empty()) wait_for_holders(stream);
  }

 private:
  using Holders = std::vector<std::shared_ptr<HostEventState>>;
  Holders& held_by(Stream stream) { return held_[static_cast<std::size_t>(stream)]; }
  void wait_for_holders(Stream stream);

  std::array<Holders, 2> held_;
};

// An event of the host. After record() it has passed at once; otherwise it passes when signal() is called, by
// any thread.
class HostEvent final : public Event {
 public:
  explicit HostEvent(std::shared_ptr<HostStreams> streams) : streams_(std::move(streams)) {}

  void record(Stream stream) override;
  void signal() override { state_->set(true); }
  void reset() override { state_->set(false); }
  void hold(Stream stream) override { streams_->hold(stream, state_); }
  bool passed() const override { return state_->passed(); }
  void wait() override { state_->wait(); }

 private:
  std::shared_ptr<HostStreams> streams_;
  std::shared_ptr<HostEventState> state_ = std::make_shared<HostEventState>();
};

}  // namespace plexaura
