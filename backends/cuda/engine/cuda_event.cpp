#include "backends/cuda/engine/cuda_event.h"

#include <utility>

namespace plexaura::cuda {

void EventState::begin(Kind next) {
  kind = next;
  changed.notify_all();
}

void EventState::recorded_in(runtime::Stream* stream) {
  begin(Kind::recorded);
  if (const auto kept = std::exchange(promise, std::nullopt)) runtime::raise(stream, kept->flag, kept->value);
}

void CudaEvent::record(Stream stream) {
  runtime::Stream* const into = device_->stream(stream);
  if (device_->capture.active()) {
    device_->capture.record(state_, stream);
    if (!state_->mark) state_->mark.reset(runtime::make_event());
    return device_->capture.add([state = state_, into] {
      runtime::record(state->mark.get(), into);
      runtime::record_in_graph(state->event.get(), into);
    });
  }
  const std::lock_guard lock(state_->mutex);
  runtime::record(state_->event.get(), into);
  state_->recorded_in(into);
}

void CudaEvent::signal() {
  device_->capture.forbid("signalling an event");
  const std::lock_guard lock(state_->mutex);
  state_->begin(EventState::Kind::signalled);
  if (const auto kept = std::exchange(state_->promise, std::nullopt)) runtime::raise(kept->flag, kept->value);
}

void CudaEvent::reset() {
  device_->capture.forbid("resetting an event");
  const std::lock_guard lock(state_->mutex);
  state_->kind = EventState::Kind::open;
}

void CudaEvent::hold(Stream stream) {
  runtime::Stream* const held = device_->stream(stream);
  if (device_->capture.active()) {
    device_->capture.hold(state_, stream);
    return device_->capture.add([state = state_, held] { runtime::hold(held, state->mark.get()); });
  }
  const std::lock_guard lock(state_->mutex);
  if (state_->kind == EventState::Kind::recorded) return runtime::hold(held, state_->event.get());
  if (state_->kind == EventState::Kind::signalled) return;
  if (!state_->promise) state_->promise = device_->promises.make();
  runtime::hold(held, state_->promise->flag, state_->promise->value);
}

bool CudaEvent::passed() const {
  device_->capture.forbid("a query of an event");
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
  device_->transfers.count_wait();
  runtime::synchronize(state_->event.get());
  device_->throw_wrong_index();
}

}  // namespace plexaura::cuda
