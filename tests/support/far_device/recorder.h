#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "tests/support/far_device/streams.h"

namespace plexaura::far_device {

// What stands in a recording: kernels and copies within the device.
using Recorded = std::variant<std::shared_ptr<Job>, Copy>;

// Captures what is launched while a segment is recorded. Only the recording thread is captured, and only to
// it are waiting, allocating and the rest forbidden: a communication thread may wait for its events
// meanwhile.
class Recorder {
 public:
  // All that body() gives to add().
  std::vector<Recorded> capture(const std::function<void()>& body);

  bool active() const { return thread_.load() == std::this_thread::get_id(); }
  void add(Recorded item) { recorded_.push_back(std::move(item)); }

  // Throws InternalError while this thread records.
  void forbid(std::string_view what) const;

 private:
  std::atomic<std::thread::id> thread_{};  // the one that records; nobody's otherwise
  std::vector<Recorded> recorded_;
};

}  // namespace plexaura::far_device
