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

struct RecordedCopy {
  Address dst;  // as given, so that each replay can check that it is still allocated
  const std::byte* src;
  std::size_t bytes;
};
struct RecordedEvent {
  std::shared_ptr<EventState> event;
};
struct RecordedHold {
  std::shared_ptr<EventState> event;
};

struct Recorded {
  Lane lane;
  std::variant<std::shared_ptr<Job>, RecordedCopy, RecordedEvent, RecordedHold> what;
};

// Captures the work that is enqueued while a segment is recorded, and checks the rules of Backend::record().
// Only the recording thread is captured, and only this thread must not wait, allocate and so on. Another
// thread may wait for its events meanwhile.
class Recorder {
 public:
  // Returns everything that body() enqueues. If the copy stream was used, the compute stream waits for it at
  // the end.
  std::vector<Recorded> capture(const std::function<void()>& body);

  bool active() const { return thread_.load() == std::this_thread::get_id(); }
  void launch(std::shared_ptr<Job> job) { recorded_.push_back({Lane::compute, std::move(job)}); }
  void copy(Stream stream, const RecordedCopy& copy);
  void record(std::shared_ptr<EventState> event, Stream stream);
  void hold(std::shared_ptr<EventState> event, Stream stream);

  // Throws InternalError if this thread records.
  void forbid(std::string_view what) const;

 private:
  Lane take_part(Stream stream) const;

  std::atomic<std::thread::id> thread_{};  // the thread that records, or none
  std::vector<Recorded> recorded_;
  std::vector<std::shared_ptr<EventState>> events_;  // events recorded in this body
  bool has_copy_stream_ = false;                     // true if it was used in this body
};

}  // namespace plexaura::far_device
