#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/engine/branches.h"
#include "core/device/backend.h"

namespace plexaura::cuda {

struct EventState;

// A part of a recording, and the function that enqueues it.
struct Part {
  std::function<void()> enqueue;
  Work work;
};

// Captures the body of Backend::record(): enforces its rules, for the capturing thread only, and keeps the
// work that the body enqueues. CUDA gets this work only after the body has ended.
class Capture {
 public:
  // Lets the calling thread capture while the object lives.
  class Scope {
   public:
    explicit Scope(Capture& capture);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Capture& capture_;
  };

  bool active() const { return thread_.load() == std::this_thread::get_id(); }
  bool has_copy_stream() const { return has_copy_stream_; }  // true if the copy stream takes part

  // The functions below throw InternalError if a rule is broken.
  void forbid(std::string_view what) const;
  void require_part(Stream stream) const;
  void record(std::shared_ptr<EventState> event, Stream stream);
  void hold(const std::shared_ptr<EventState>& event, Stream stream);

  void add(std::function<void()> enqueue, Work work = {.divides = true}) {
    parts_.push_back({std::move(enqueue), std::move(work)});
  }
  void count_host_copy() { ++host_copies_; }

  // The results of a capture: the parts, the recorded events, and the number of copies from or to the host.
  std::vector<Part> take_parts() { return std::exchange(parts_, {}); }
  std::vector<std::shared_ptr<EventState>> take_events();
  std::uint64_t host_copies() const { return host_copies_; }

 private:
  // Id of the capturing thread; the default id if nothing is captured.
  std::atomic<std::thread::id> thread_{};
  std::vector<Part> parts_;
  std::vector<std::shared_ptr<EventState>> events_;
  bool has_copy_stream_ = false;
  std::uint64_t host_copies_ = 0;
};

}  // namespace plexaura::cuda
