#pragma once

#include <memory>
#include <mutex>

#include "backends/cuda/capture.h"
#include "backends/cuda/pinned.h"
#include "backends/cuda/promises.h"
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

// What all objects of one backend share: its streams, and what it captures.
class Device {
 public:
  explicit Device(int index);

  runtime::Stream* stream(Stream which) const { return (which == Stream::compute ? compute : copy).get(); }

  const runtime::Device info;
  Promises promises;  // outlives the streams, which wait for them
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
