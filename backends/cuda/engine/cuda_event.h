#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "backends/cuda/engine/device.h"
#include "core/device/backend.h"

namespace plexaura::cuda {

// The state of an event. The event may hold streams before it is recorded or signalled. Such streams wait for
// a flag, which is raised when the event is recorded or signalled.
struct EventState {
  enum class Kind : std::uint8_t { open, signalled, recorded };

  // Ends the state `open`, and wakes the threads that wait for its end.
  void begin(Kind next);
  // Records that the event was recorded in the stream, which then also raises the flag.
  void recorded_in(runtime::Stream* stream);

  const EventHandle event{runtime::make_awaited_event()};
  EventHandle mark;  // the event in captures; null until a capture records it
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  Kind kind = Kind::open;
  std::optional<Promise> promise;  // flag for which held streams wait
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  void record(Stream stream) override;
  void signal() override;
  void reset() override;
  void hold(Stream stream) override;
  bool passed() const override;
  void wait() override;

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<EventState> state_ = std::make_shared<EventState>();
};

}  // namespace plexaura::cuda
