#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "backends/cuda/engine/branches.h"
#include "backends/cuda/engine/capture.h"
#include "backends/cuda/engine/pinned.h"
#include "backends/cuda/engine/promises.h"
#include "backends/cuda/engine/transfers.h"
#include "backends/cuda/runtime/runtime.h"
#include "backends/cuda/runtime/thread_device.h"
#include "core/device/backend.h"

namespace plexaura::cuda {

template <class T>
struct Destroy {
  void operator()(T* object) const noexcept { runtime::destroy(object); }
};
using StreamHandle = std::unique_ptr<runtime::Stream, Destroy<runtime::Stream>>;
using EventHandle = std::unique_ptr<runtime::Event, Destroy<runtime::Event>>;
using GraphHandle = std::unique_ptr<runtime::Graph, Destroy<runtime::Graph>>;

// Device memory that is 0 for all work that enters the stream from now on.
class Zeros {
 public:
  Zeros(std::size_t bytes, runtime::Stream* stream);
  ~Zeros() { runtime::free_device(address_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  std::byte* address() const { return address_; }

 private:
  Pinned source_;  // host memory from which the zeros are copied
  std::byte* address_;
};

// The stream on which the kernels of a branch are enqueued, and their counters.
struct Branch {
  runtime::Stream* stream;
  std::byte* arrivals;  // counters for arrive(): see Call::arrivals
};

// The state that all objects of one backend share: its streams, its capture, and its counts of transfers.
class Device {
 public:
  explicit Device(int index);

  runtime::Stream* stream(Stream which) const { return (which == Stream::compute ? compute : copy).get(); }

  const runtime::Device info;
  Promises promises;  // outlives the streams, which wait for flags in it
  const StreamHandle compute{runtime::make_stream()};
  const StreamHandle copy{runtime::make_stream()};
  const StreamHandle beside{runtime::make_stream()};  // stream of the second branch
  const Pinned wrong_index;                           // holds a WrongIndex
  Capture capture;
  Transfers transfers;

  // The branch on which this thread enqueues kernels. It is the first one, except while a recording is made.
  const Branch& branch() const {
    runtime::use_device_in_this_thread();
    return branches_[branch_];
  }
  void go_to_branch(std::size_t index) { branch_ = index; }

  // Throws DeviceError if a kernel has found a wrong index since the last call. Any thread may call it, also
  // while kernels run.
  void throw_wrong_index();

 private:
  const Zeros arrivals_;
  const std::array<Branch, most_branches> branches_;
  std::size_t branch_ = 0;
  std::mutex mutex_;  // guards the reading of wrong_index
};

}  // namespace plexaura::cuda
