#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "backends/cuda/device.h"
#include "core/device/backend.h"

namespace plexaura::cuda {

// An event and the flag by which the host signals it. Its uses are numbered: the flag holds the number of the last one
// that was passed by a signal, so that a stream which waits for a use is released by a later one, too.
struct EventState {
  enum class Kind : std::uint8_t { open, signalled, recorded };

  EventState();
  ~EventState();
  EventState(const EventState&) = delete;
  EventState& operator=(const EventState&) = delete;

  // A new use, which may begin where none is open.
  void begin(Kind next);
  // It was recorded in the stream, which releases those that wait for the flag.
  void recorded_in(runtime::Stream* stream);

  const EventHandle event{runtime::make_event()};
  const EventHandle mark{runtime::make_event()};  // of captures
  runtime::Flag* const flag;
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  Kind kind = Kind::open;
  runtime::Flag use = 1;
  bool holds_open = false;  // a stream waits for the flag
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
