#include "backends/cpu/host_event.h"

namespace plexaura {

void HostStreams::hold(Stream stream, std::shared_ptr<HostEventState> event) {
  if (!event->passed()) held_by(stream).push_back(std::move(event));
}

void HostStreams::wait_for_holders(Stream stream) {
  for (const auto& event : held_by(stream)) event->wait();
  held_by(stream).clear();
}

// Waits for the events that hold the stream, because this event must not pass before them.
void HostEvent::record(Stream stream) {
  streams_->drain(stream);
  state_->set(true);
}

}  // namespace plexaura
