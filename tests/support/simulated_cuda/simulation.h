#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "backends/cuda/runtime/runtime.h"
#include "tests/support/far_device/far_memory.h"
#include "tests/support/simulated_cuda/captured_graph.h"

// CUDA's runtime without a GPU. Enqueued work starts only when somebody waits for it; the waiting thread then
// computes it. Memory of the device faults on the host. Calls that CUDA forbids during a capture throw. A
// failure is reported by the next wait and by all later calls of CUDA except those that free something: the
// device is lost.

namespace plexaura::cuda::simulation {

struct Work {
  std::function<void()> run;
};
struct Mark {
  EventHandle event;
  std::uint64_t use;
};
struct HoldByEvent {
  EventHandle event;
  std::uint64_t use;
  runtime::Stream* stream;
  std::uint64_t position;
};
struct HoldByFlag {
  const runtime::Flag* flag;
  runtime::Flag value;
};
// Holds a stream until other processes have acted.
struct HoldByOthers {
  std::function<bool()> have_come;
};
using Task = std::variant<Work, Mark, HoldByEvent, HoldByFlag, HoldByOthers>;

// A flag that a stream will raise.
struct Raise {
  const runtime::Flag* flag;
  runtime::Flag value;
  runtime::Stream* stream;
  std::uint64_t position;
};

// Faults to simulate. Environment variables set them; by default there are none.
struct Faults {
  static Faults of_environment();
  bool operator==(const Faults&) const = default;

  // PLEXAURA_SIMULATED_CUDA_MEMORY: bytes of memory of the device
  std::size_t memory = std::numeric_limits<std::size_t>::max();
  // PLEXAURA_SIMULATED_CUDA_REFUSES: this launch, counted from 1, fails at once.
  std::uint64_t refused_launch = 0;
  // PLEXAURA_SIMULATED_CUDA_DIES_IN: the device is lost in this work, counted from 1.
  std::uint64_t deadly_work = 0;
  // PLEXAURA_SIMULATED_CUDA_FORGETS: this event wait in captures, counted from 1, has no effect.
  std::uint64_t forgotten_hold = 0;
  // PLEXAURA_SIMULATED_CUDA_PATIENCE: milliseconds after which a wait counts as endless.
  std::uint64_t patience = 20000;
};

// The only device of the process. One lock protects all of it; work runs under the lock.
class Device {
 public:
  static Device& get();

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  far_device::FarMemoryMap& memory() { return memory_; }
  std::uint64_t times_freed = 0;

  // Called by each backend that is opened, with the faults of the environment. Launches and work are counted
  // from the first backend with these faults.
  void set_faults(const Faults& faults);
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* address);
  // Makes the device current in this thread. Otherwise its kernels belong to another device, and this
  // device's streams refuse them.
  static void use_in_this_thread();
  // Called before each launch of a kernel. Counts it, and throws if the device has failed or refuses it.
  void begin_launch(const std::string& name);
  // Throws the failure, once it has been reported. Called by each call of CUDA.
  void throw_failure() const;
  // Returns the order in which the blocks of the next launch run. It differs between launches, but not
  // between processes.
  std::vector<std::int64_t> order_of_blocks(std::int64_t blocks);

  void enqueue(runtime::Stream* stream, const std::string& name, std::function<void()> run);
  // Records that running work uses these bytes, if a check for races in a graph needs it.
  bool notes_uses() const { return used_ != nullptr; }
  void note_use(const std::byte* place, std::size_t bytes, bool writes);
  void record(const EventHandle& event, runtime::Stream* stream);
  void record_in_graph(const EventHandle& event, runtime::Stream* stream);
  void hold(runtime::Stream* stream, const EventHandle& event);
  void hold(runtime::Stream* stream, HoldByFlag hold);
  void hold(runtime::Stream* stream, HoldByOthers hold);
  void raise(runtime::Stream* stream, runtime::Flag* flag, runtime::Flag value);
  void launch(runtime::Graph& graph, runtime::Stream* stream);
  void synchronize(const EventHandle& event, std::unique_lock<std::mutex>& lock);
  void flag_changed() { changed_.notify_all(); }
  void add(runtime::Stream* stream) { streams_.push_back(stream); }
  void drop(runtime::Stream* stream);
  // CUDA may wait for all work in streams when memory is allocated or freed. If a stream waits for a flag
  // that no other thread raises, this wait would be endless, so the device is lost.
  void wait_for_flags(const char* call, std::unique_lock<std::mutex>& lock);

  void begin_capture(runtime::Stream* stream);
  CapturedGraph end_capture();
  void drop_capture() { capturing_.erase(std::this_thread::get_id()); }
  // Throws the error of CUDA for a call that a capturing thread must not make.
  void forbid_in_capture(const char* call);

 private:
  Capturing* capturing();  // the capture of this thread; null if there is none
  void capture(runtime::Stream* stream, GraphNode node);
  void run_up_to(runtime::Stream& stream, std::uint64_t position, std::unique_lock<std::mutex>& lock);
  const Raise* raise_to(const HoldByFlag& hold) const;
  bool waits_for_host(const runtime::Stream& stream) const;
  bool start(runtime::Stream& stream, std::unique_lock<std::mutex>& lock);
  void run(const std::function<void()>& work);
  void run(const CapturedGraph& graph, const std::vector<std::uint64_t>& uses, bool checks_races);

  std::mutex mutex_;
  std::condition_variable changed_;
  far_device::FarMemoryMap memory_;
  std::map<std::thread::id, Capturing> capturing_;
  std::vector<runtime::Stream*> streams_;
  std::vector<Raise> raises_;  // not done yet
  std::string failure_;
  Faults faults_;
  std::map<std::byte*, std::size_t> pieces_;  // pieces of the device's memory
  std::size_t bytes_used_ = 0;
  std::uint64_t launches_ = 0;
  std::uint64_t works_run_ = 0;
  std::uint64_t holds_ = 0;  // number of event waits in captures
  double time_ = 0;          // in seconds; each kernel takes one
  UsedBytes* used_ = nullptr;
  std::mt19937_64 random_;
};

}  // namespace plexaura::cuda::simulation

namespace plexaura::cuda::runtime {

struct Stream {
  std::deque<simulation::Task> tasks;
  std::uint64_t entered = 0;
  std::uint64_t done = 0;
};

struct Event {
  bool timed = false;
  bool awaited = false;  // true: the host may wait for it
  simulation::EventHandle state = std::make_shared<simulation::EventState>();
};

struct Graph {
  std::shared_ptr<const simulation::CapturedGraph> captured;
  bool checked = false;  // true if races were checked
};

}  // namespace plexaura::cuda::runtime
