#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/device/backend.h"

namespace plexaura::far_device {

// The streams of the device, and an additional one for the copies of recordings, which are not ordered with
// the copy stream.
enum class Lane : std::uint8_t { compute, copy, recorded_copy };

inline Lane lane_of(Stream stream) { return stream == Stream::compute ? Lane::compute : Lane::copy; }

// Work that runs on a lane's thread. An exception is kept as a failure of the device.
class Job {
 public:
  virtual ~Job() = default;
  virtual void run() = 0;
};

struct Copy {
  std::byte* dst;  // real addresses
  const std::byte* src;
  std::size_t bytes;
  void run() const;
};

// One use of an event. An event may be used again before it has passed; a hold or wait belongs to the use
// that was the last when it was made.
struct Ticket {
  std::uint64_t use = 0;
  std::optional<Lane> lane;    // where the event was recorded; none if the host will signal it
  std::uint64_t position = 0;  // number of the lane's tasks before it
};

// Protected by the lock of Streams.
struct EventState {
  Ticket last{1, std::nullopt, 0};
  std::uint64_t passed_use = 0;  // all uses up to this one have passed
};

struct Mark {
  std::shared_ptr<EventState> event;
  std::uint64_t use;
};

struct Hold {
  std::shared_ptr<EventState> event;
  Ticket ticket;
};

using Task = std::variant<std::shared_ptr<Job>, Copy, Mark, Hold>;

// A FIFO queue that allocates only when it grows.
class TaskQueue {
 public:
  bool empty() const { return count_ == 0; }
  void push(Task task);
  Task pop();

 private:
  std::vector<Task> ring_ = std::vector<Task>(64);
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

// The lanes of the far device, with one thread each, and the events between them and the host. One lock
// protects everything; jobs and copies run without it. A lazy lane starts nothing until somebody waits for
// it: the host, or another lane that is waited for itself.
class Streams {
 public:
  explicit Streams(bool lazy);
  ~Streams();  // drops work that has not started
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  void enqueue(Lane lane, Task task);

  void record(const std::shared_ptr<EventState>& event, Lane lane);
  void hold(const std::shared_ptr<EventState>& event, Lane lane);
  void signal(EventState& event);
  void reset(EventState& event);
  bool passed(const EventState& event) const;
  void wait(EventState& event);  // throws the first failure since the last wait

 private:
  struct Queue {
    TaskQueue tasks;
    std::uint64_t entered = 0;  // number of tasks so far
    std::uint64_t started = 0;
    std::uint64_t released = 0;  // number of tasks that may start
  };
  using Lock = std::unique_lock<std::mutex>;

  Queue& queue(Lane lane) { return queues_[static_cast<std::size_t>(lane)]; }
  std::uint64_t push(Lane lane, Task task);
  void release_up_to(const Ticket& ticket);
  void work(Lane lane);
  void execute(Task& task, Lock& lock);
  void run_unlocked(Task& task, Lock& lock);
  void await(const EventState& event, const Ticket& ticket, Lock& lock);
  void throw_failure();

  const bool lazy_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Queue, 3> queues_;
  std::optional<std::string> failure_;
  bool stopping_ = false;
  std::array<std::thread, 3> threads_;
};

}  // namespace plexaura::far_device
