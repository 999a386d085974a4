#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "backends/cuda/capture.h"
#include "backends/cuda/runtime/runtime.h"
#include "core/device/backend.h"

namespace plexaura::cuda {

template <class T>
struct Destroy {
  void operator()(T* object) const noexcept { runtime::destroy(object); }
};
using StreamHandle = std::unique_ptr<runtime::Stream, Destroy<runtime::Stream>>;
using EventHandle = std::unique_ptr<runtime::Event, Destroy<runtime::Event>>;
using GraphHandle = std::unique_ptr<runtime::Graph, Destroy<runtime::Graph>>;

// A piece of pinned memory.
class Pinned {
 public:
  explicit Pinned(std::size_t bytes) : address_(runtime::allocate_pinned(bytes)) {}
  ~Pinned() { runtime::free_pinned(address_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::byte* address() const { return address_; }

 private:
  std::byte* address_;
};

// What all objects of one backend share: its streams, and what it captures.
class Device {
 public:
  explicit Device(int index);

  runtime::Stream* stream(Stream which) const { return (which == Stream::compute ? compute : copy).get(); }

  const runtime::Device info;
  const StreamHandle compute{runtime::make_stream()};
  const StreamHandle copy{runtime::make_stream()};
  const Pinned wrong_index;  // a WrongIndex
  Capture capture;

  // DeviceError where a kernel has told one since the last time. Any thread, also while kernels run.
  void throw_wrong_index();

 private:
  std::mutex mutex_;  // of looking
};

}  // namespace plexaura::cuda
