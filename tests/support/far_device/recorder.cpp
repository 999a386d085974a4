#include "tests/support/far_device/recorder.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura::far_device {

namespace {

struct Recording {
  explicit Recording(std::atomic<std::thread::id>& thread) : thread(thread) {
    thread = std::this_thread::get_id();
  }
  ~Recording() { thread = std::thread::id(); }
  std::atomic<std::thread::id>& thread;
};

}  // namespace

std::vector<Recorded> Recorder::capture(const std::function<void()>& body) {
  forbid("recording");
  recorded_.clear();
  events_.clear();
  has_copy_stream_ = false;
  const Recording recording(thread_);
  body();
  if (has_copy_stream_) {
    const auto joined = std::make_shared<EventState>();
    record(joined, Stream::copy);
    hold(joined, Stream::compute);
  }
  return std::exchange(recorded_, {});
}

void Recorder::copy(Stream stream, const RecordedCopy& copy) {
  recorded_.push_back({take_part(stream), copy});
}

void Recorder::record(std::shared_ptr<EventState> event, Stream stream) {
  const Lane lane = take_part(stream);
  events_.push_back(event);
  recorded_.push_back({lane, RecordedEvent{std::move(event)}});
}

void Recorder::hold(std::shared_ptr<EventState> event, Stream stream) {
  if (std::ranges::find(events_, event) == events_.end())
    forbid("holding a stream by an event from outside the recording");
  if (stream == Stream::copy) has_copy_stream_ = true;
  recorded_.push_back({take_part(stream), RecordedHold{std::move(event)}});
}

Lane Recorder::take_part(Stream stream) const {
  if (stream == Stream::compute) return Lane::compute;
  if (!has_copy_stream_) forbid("using the copy stream, which no event of the recording has held,");
  return Lane::recorded_copy;
}

void Recorder::forbid(std::string_view what) const {
  if (active())
    throw InternalError(
        fmt::format("{} while a segment is recorded for the far device: see Backend::record()", what));
}

}  // namespace plexaura::far_device
