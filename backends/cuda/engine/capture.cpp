#include "backends/cuda/engine/capture.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura::cuda {

Capture::Scope::Scope(Capture& capture) : capture_(capture) {
  capture.forbid("recording");
  capture.events_.clear();
  capture.has_copy_stream_ = false;
  capture.host_copies_ = 0;
  capture.thread_ = std::this_thread::get_id();
}

Capture::Scope::~Scope() {
  capture_.parts_.clear();  // parts remain here only if the body threw
  capture_.thread_ = std::thread::id();
}

void Capture::forbid(std::string_view what) const {
  if (active())
    throw InternalError(fmt::format("{} while a segment is recorded for CUDA: see Backend::record()", what));
}

void Capture::require_part(Stream stream) const {
  if (stream == Stream::copy && !has_copy_stream_)
    forbid("using the copy stream, which no event of the recording has held,");
}

void Capture::record(std::shared_ptr<EventState> event, Stream stream) {
  require_part(stream);
  events_.push_back(std::move(event));
}

void Capture::hold(const std::shared_ptr<EventState>& event, Stream stream) {
  if (std::ranges::find(events_, event) == events_.end())
    forbid("holding a stream by an event from outside the recording");
  if (stream == Stream::copy) has_copy_stream_ = true;
}

std::vector<std::shared_ptr<EventState>> Capture::take_events() { return std::exchange(events_, {}); }

}  // namespace plexaura::cuda
