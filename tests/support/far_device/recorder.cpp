#include "tests/support/far_device/recorder.h"

#include <fmt/format.h>
#include <utility>

#include "core/error.h"

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
  {
    const Recording recording(thread_);
    body();
  }
  return std::exchange(recorded_, {});
}

void Recorder::forbid(std::string_view what) const {
  if (active())
    throw InternalError(
        fmt::format("{} while a segment is recorded for the far device: a recording holds kernels and "
                    "copies within the device alone",
                    what));
}

}  // namespace plexaura::far_device
