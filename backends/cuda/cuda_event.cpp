#include "backends/cuda/cuda_event.h"

#include <new>

namespace plexaura::cuda {

EventState::EventState() : flag(new (runtime::allocate_pinned(sizeof(runtime::Flag))) runtime::Flag(0)) {}

EventState::~EventState() { runtime::free_pinned(reinterpret_cast<std::byte*>(flag)); }

void EventState::begin(Kind next) {
  if (kind != Kind::open) ++use;
  kind = next;
  changed.notify_all();
}

void EventState::recorded_in(runtime::Stream* stream) {
  begin(Kind::recorded);
  if (holds_open) runtime::raise(stream, flag, use);
  holds_open = false;
}

void CudaEvent::record(Stream stream) {
  runtime::Stream* const into = device_->stream(stream);
  if (device_->capture.active()) {
    device_->capture.record(state_, stream);
    runtime::record(state_->mark.get(), into);
    runtime::record_in_graph(state_->event.get(), into);
    return;
  }
  const std::lock_guard lock(state_->mutex);
  runtime::record(state_->event.get(), into);
  state_->recorded_in(into);
}

void CudaEvent::signal() {
  device_->capture.forbid("signalling an event");
  const std::lock_guard lock(state_->mutex);
  state_->begin(EventState::Kind::signalled);
  state_->holds_open = false;
  runtime::raise(state_->flag, state_->use);
}

void CudaEvent::reset() {
  device_->capture.forbid("resetting an event");
  const std::lock_guard lock(state_->mutex);
  ++state_->use;
  state_->kind = EventState::Kind::open;
}

void CudaEvent::hold(Stream stream) {
  runtime::Stream* const held = device_->stream(stream);
  if (device_->capture.active()) {
    device_->capture.hold(state_, stream);
    return runtime::hold(held, state_->mark.get());
  }
  const std::lock_guard lock(state_->mutex);
  if (state_->kind == EventState::Kind::recorded) return runtime::hold(held, state_->event.get());
  if (state_->kind == EventState::Kind::signalled) return;
  state_->holds_open = true;
  runtime::hold(held, state_->flag, state_->use);
}

bool CudaEvent::passed() const {
  device_->capture.forbid("asking for an event");
  const std::lock_guard lock(state_->mutex);
  if (state_->kind == EventState::Kind::recorded) return runtime::passed(state_->event.get());
  return state_->kind == EventState::Kind::signalled;
}

void CudaEvent::wait() {
  device_->capture.forbid("waiting");
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->kind != EventState::Kind::open; });
    if (state_->kind == EventState::Kind::signalled) return;
  }
  runtime::synchronize(state_->event.get());
  device_->throw_wrong_index();
}

}  // namespace plexaura::cuda
