#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// What a HostEvent and the streams that are held by it share.
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

// The two streams of a device that is the host itself: work is done in the call that enqueues it. Only events
// can make it wait: those that hold a stream are waited for when the next work enters it.
class HostStreams {
 public:
  void hold(Stream stream, std::shared_ptr<HostEventState> event);
  // Before anything enters the stream. Allocates nothing.
  void settle(Stream stream) {
    if (!held_by(stream).empty()) wait_for_holders(stream);
  }

 private:
  using Holders = std::vector<std::shared_ptr<HostEventState>>;
  Holders& held_by(Stream stream) { return held_[static_cast<std::size_t>(stream)]; }
  void wait_for_holders(Stream stream);

  std::array<Holders, 2> held_;
};

// Recorded, it has passed at once; otherwise it passes when the host signals it, from any thread.
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
