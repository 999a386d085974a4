#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"
#include "core/graph/uses.h"
#include "core/tensor/layout.h"

// This header is the manual for porting to a device: it contains all that the engine requires of it. A
// backend implements Backend, Memory, Event, Kernel and Launch and, if it can record, Recording. If
// BackendInfo::host_memory is true, several threads call these functions at once, except regions(), repeats(),
// propose() and Candidate::make. All other calls come from one thread at a time, unless a comment says otherwise.

namespace plexaura {

// An address in a device's memory. Only the device may read and write there, unless BackendInfo::host_memory
// is true.
using Address = std::byte*;

// Device or staging memory, freed by the destructor. The engine frees no memory that work may still use.
class PLEXAURA_API Memory {
 public:
  virtual ~Memory();
  virtual Address address() const = 0;  // aligned to 64 bytes or more
  virtual std::size_t bytes() const = 0;
};

// Two queues. Kernels run in order on `compute`; copies run in order on the stream that they are given. Only
// events order work between the two.
enum class Stream : std::uint8_t { compute, copy };

// A point in time. A new event is not passed. It is reused in each step: reset() makes it not passed, signal()
// makes it passed, and record() replaces what it waits for.
class PLEXAURA_API Event {
 public:
  virtual ~Event();
  virtual void record(Stream stream) = 0;  // passes when all work that is in the stream at this call is done
  virtual void signal() = 0;  // lets the event pass now, on behalf of the host; any thread may call it
  virtual void reset() = 0;
  // Makes all work that enters the stream from now on wait for the event. Returns at once.
  virtual void hold(Stream stream) = 0;
  virtual bool passed() const = 0;  // any thread may call it
  // Blocks the host until the event is passed. Throws the first failure of the device since the last wait: a
  // DeviceError with the name of the launch. Any thread may call it.
  virtual void wait() = 0;
};

// A captured segment. replay() enqueues all its work again: kernels on the compute stream, copies on the stream to which
// they belong. Work that enters the compute stream later starts when all work of the replay is done. Each replay makes
// the recorded events not passed again. The memory and the events that the work uses must outlive the recording.
class PLEXAURA_API Recording {
 public:
  virtual ~Recording();
  virtual void replay() = 0;
};

// One or more nodes that one kernel computes, with their inputs and outputs. A single op is a region of one
// node.
struct Region {
  std::string kind;  // the name of the op, or the backend's name of the pattern: "batch_norm+relu"
  // The region's nodes in topological order; the last one is the end of the region.
  std::vector<NodeId> nodes;
  // Values from outside the region; for a single op all its inputs, repeated ones too.
  std::vector<Value> inputs;
  std::vector<Value> outputs;  // values that other nodes may read
};

// Nodes that a program computes twice: some of their readers read copies of the nodes, and all others the nodes
// themselves. So two regions can hide values that both need.
struct Repeat {
  std::vector<NodeId> nodes;  // in topological order
  // The nodes that read the copies. They come after all of `nodes`.
  std::vector<NodeId> readers;
};

// A region, and the facts about it that the engine knows when it asks for kernels.
struct RegionQuery {
  const Graph& graph;
  const Region& region;
  // The layout of each input. Empty for a parameter without a placement, which takes any layout at no cost,
  // and for all inputs while the engine selects regions.
  std::vector<std::optional<Layout>> given;
  std::vector<bool> wanted;  // for each output: true if a node or the caller reads it

  const TensorType& type(Value value) const { return graph.type(value); }
  const Op& op(std::size_t index = 0) const { return *graph.record(region.nodes[index]).op; }
};

// The addresses for one use of a kernel. The address of an output that nothing reads is null, and that of an
// input that the kernel does not read may be null. `name`, such as "matmul %7 of a.cpp:12", outlives the launch.
struct Binding {
  std::vector<Address> inputs;
  std::vector<Address> outputs;
  Address workspace = nullptr;
  const std::string* name = nullptr;
};

// A kernel with its addresses.
class PLEXAURA_API Launch {
 public:
  virtual ~Launch();
  // Runs the kernel, or enqueues it on the compute stream. Must not allocate. A failure is thrown here or by
  // the next wait.
  virtual void run() = 0;
};

// Compiled code for a region with given types and layouts. It has no state, and many launches share it.
class PLEXAURA_API Kernel {
 public:
  virtual ~Kernel();
  // Returns the bytes of scratch memory that each launch needs. The engine does not initialise it.
  virtual std::size_t workspace() const { return 0; }
  virtual std::unique_ptr<Launch> bind(const Binding& binding) const = 0;
};

// One way to compute a region.
struct Candidate {
  // A text that the program prints, such as "onednn jit:avx512_core". It distinguishes candidates with the
  // same layouts.
  std::string implementation;
  std::vector<Layout> inputs;   // the layout of each input that the kernel needs
  std::vector<Layout> outputs;  // the layout of each output that the kernel writes
  // For each input: true if the kernel reads it. An input that it does not read may be freed earlier, and its
  // address may be null. Empty: the kernel reads all inputs.
  std::vector<bool> reads;
  // Pairs (i, j): output i may use the memory of input j.
  std::vector<std::pair<std::size_t, std::size_t>> in_place;
  double seconds = 0;  // estimated seconds; infinite: only a measurement can choose the candidate
  bool has_estimate() const { return std::isfinite(seconds); }
  // Generates the code. Must be called while the graph and the region of the query exist. Two calls may
  // return the same kernel.
  std::function<std::shared_ptr<const Kernel>()> make;
};

struct BackendInfo {
  std::string name;  // such as "cpu"
  // The library and the processor, for --version. Measured times are valid where `name`, `description`,
  // `kind` and `build` are equal.
  std::string description;
  // True: addresses are host addresses, and copies and kernels are finished when the call returns.
  bool host_memory = false;
  // The processor, its instructions and the number of threads. Results have equal bits where builds and this
  // text are equal.
  std::string kind = {};
  // The speed of a reorder: bytes that it reads and writes per second. The engine estimates the time of a
  // reorder from it.
  double bytes_reordered_in_a_second = 1e10;
  // A stamp of the backend's own kernels. It changes when their code changes.
  std::string build = {};
};

enum class MemoryUse : std::uint8_t {
  device,  // memory of the device, which kernels read and write; initially undefined
  staging  // host memory that asynchronous copies read and write
};

class PLEXAURA_API Backend : public std::enable_shared_from_this<Backend> {
 public:
  Backend();
  virtual ~Backend();

  // A lock for threads that compile for this backend or, if its memory is not host memory, use it in any
  // other way, while other threads may do so too. A backend that forwards calls to another backend returns
  // that backend's lock.
  virtual std::recursive_mutex& turn() const { return turn_; }

  virtual const BackendInfo& info() const = 0;

  // Allocates any number of bytes, also 0. Throws DeviceError, with the requested and the available number of
  // bytes.
  virtual std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) = 0;

  // Enqueues a copy between device memory and staging memory, or within either of them. Staging memory must
  // not be touched until the copy is done.
  virtual void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) = 0;

  virtual std::unique_ptr<Event> make_event() = 0;

  // Calls body(), which launches kernels, enqueues copies and records events, and captures these instead of
  // running them. Only events of the same body may hold a stream. The copy stream is captured from the first
  // such hold on, and nothing in the recording is ordered with other work of that stream. Meanwhile, in this
  // thread, any other use of streams, any allocation, and any call that waits for events, asks for them or
  // signals them throws InternalError. Returns null, without calling body(), if the backend cannot record;
  // this is the default.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& body);

  // Returns regions of more than one node that end at `last`, the preferred ones first. The engine takes
  // those that save the most time by the estimates of their candidates, if no other node reads their inner
  // values. It computes a region node by node if propose() returns no candidate for it. The default returns
  // none.
  virtual std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const;

  // Returns the nodes to be computed twice for regions that contain `last`. The engine asks for them before it asks for
  // regions, and copies all of them. Then it asks for the regions of the new graph. A node may belong to several repeats,
  // but reads the copies of one. A backend should ask for a repeat only if regions save more time or memory than it
  // takes. The default returns none.
  virtual std::vector<Repeat> repeats(const Graph& graph, NodeId last, const Uses& uses) const;

  // Returns the candidates for a region. Must be cheap and generate no code. If it returns none, a region of
  // several nodes is computed node by node, and the host computes a single op with its reference kernel. For
  // a collective op a backend usually returns none, and the host computes the sum. A backend that offers a
  // kernel for a collective op connects the ranks itself, and then the backends of all ranks must offer one.
  // Such a kernel has the row-major layout, is never measured, and may be recorded.
  virtual std::vector<Candidate> propose(const RegionQuery& query) const = 0;

 private:
  friend class BackendUse;
  mutable std::recursive_mutex turn_;
  std::shared_ptr<std::atomic<bool>> exists_;
};

// Returns the region of one node.
PLEXAURA_API Region single(const Graph& graph, NodeId node);

}  // namespace plexaura
