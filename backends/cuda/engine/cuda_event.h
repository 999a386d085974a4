#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "backends/cuda/engine/device.h"
#include "core/device/backend.h"

namespace plexaura::cuda {

// An event may hold streams before it is recorded or signalled. These wait for a flag, which is raised then.
struct EventState {
  enum class Kind : std::uint8_t { open, signalled, recorded };

  // It is open no more.
  void begin(Kind next);
  // It was recorded in the stream, which releases those that wait for the flag.
  void recorded_in(runtime::Stream* stream);

  const EventHandle event{runtime::make_awaited_event()};
  EventHandle mark;  // of captures; null while none has recorded the event
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  Kind kind = Kind::open;
  std::optional<Promise> promise;  // for which the held streams wait
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
