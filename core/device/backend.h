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

// The porting manual: everything that the engine requires of a device. A backend implements Backend, Memory,
// Event, Kernel and Launch, and, if it can record, Recording. Where BackendInfo::host_memory, several threads at once
// call everything but regions(), propose() and Candidate::make. All other calls come from one thread at a time, unless a
// comment says otherwise.

namespace plexaura {

// An address in a device's memory. Only the device reads through it, unless BackendInfo::host_memory.
using Address = std::byte*;

// A piece of device or staging memory, freed with the object. The engine frees nothing that may still be in
// use.
class PLEXAURA_API Memory {
 public:
  virtual ~Memory();
  virtual Address address() const = 0;  // aligned to 64 bytes or more
  virtual std::size_t bytes() const = 0;
};

// Two ordered queues. Kernels run in order on `compute`, copies on the stream that they are given. Nothing is
// ordered between the two but by events.
enum class Stream : std::uint8_t { compute, copy };

// A point in time that is passed once; at first it is not. Reused from step to step: record() and signal()
// start it anew, reset() too.
class PLEXAURA_API Event {
 public:
  virtual ~Event();
  virtual void record(Stream stream) = 0;  // passed when all that stands in the stream now is done
  virtual void signal() = 0;               // passed now, by the host; from any thread
  virtual void reset() = 0;
  // Work that enters the stream from now on starts after the event. Returns at once.
  virtual void hold(Stream stream) = 0;
  virtual bool passed() const = 0;  // any thread
  // Blocks the host until it is passed. Throws the first failure of the device since the last wait, a
  // DeviceError that names the launch. Any thread.
  virtual void wait() = 0;
};

// A segment that was captured; replay() enqueues all of it on the compute stream again, copies on the other stream
// too: what enters the compute stream behind it starts when all of it is done. Events in it start anew, and pass
// one by one. Its memory and its events must outlive it.
class PLEXAURA_API Recording {
 public:
  virtual ~Recording();
  virtual void replay() = 0;
};

// One or more nodes with their boundary: what one kernel computes. A single op is the region of size one.
struct Region {
  std::string kind;            // the op's name, or the backend's name for the pattern: "batch_norm+relu"
  std::vector<NodeId> nodes;   // in topological order; the last one is where the region ends
  std::vector<Value> inputs;   // read from outside; of a single op: its inputs as they stand
  std::vector<Value> outputs;  // seen from outside
};

// A region and what the engine knows about it when it asks for kernels.
struct RegionQuery {
  const Graph& graph;
  const Region& region;
  // The layout of each input; empty for a parameter without a place, which takes any layout for free, and for
  // all inputs while the engine selects regions.
  std::vector<std::optional<Layout>> given;
  std::vector<bool> wanted;  // of each output: whether anybody reads it

  const TensorType& type(Value value) const { return graph.type(value); }
  const Op& op(std::size_t index = 0) const { return *graph.record(region.nodes[index]).op; }
};

// Addresses for one use of a kernel. An output that nobody wants is null, and an input that is not read.
// `name` outlives the launch: "matmul %7 of a.cpp:12".
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
  // Runs, or enqueues on the compute stream. Must not allocate. A failure is thrown here or by the next wait.
  virtual void run() = 0;
};

// Compiled code for a region, types and layouts; stateless, shared by many launches.
class PLEXAURA_API Kernel {
 public:
  virtual ~Kernel();
  // Bytes of scratch memory that each launch needs, uninitialised.
  virtual std::size_t workspace() const { return 0; }
  virtual std::unique_ptr<Launch> bind(const Binding& binding) const = 0;
};

// One way to compute a region.
struct Candidate {
  // Printed in the program: "onednn jit:avx512_core". Tells candidates of the same layouts apart.
  std::string implementation;
  std::vector<Layout> inputs;   // wanted
  std::vector<Layout> outputs;  // given
  // Per input: whether the kernel reads it. If not, it may be freed earlier, and its address is null. Empty:
  // the kernel reads all inputs.
  std::vector<bool> reads;
  std::vector<std::pair<std::size_t, std::size_t>> in_place;  // output i may lie in the memory of input j
  double seconds = 0;  // estimate; infinite: taken only where it was measured to be fastest of several
  bool has_estimate() const { return std::isfinite(seconds); }
  // Generates the code. To be called while the graph and the region of the query live; what is asked for twice may
  // be the same kernel.
  std::function<std::shared_ptr<const Kernel>()> make;
};

struct BackendInfo {
  std::string name;  // "cpu"
  // Library and processor: for --version. Times that were measured hold where it is equal, and so are `kind`
  // and `build`.
  std::string description;
  // Addresses are host addresses, and copies and kernels are finished when the call returns.
  bool host_memory = false;
  // The processor, its instructions and the threads in use: where builds and these are equal, so are all bits
  // of results.
  std::string kind = {};
  // What a reorder reads and writes in a second: its estimate beside those of the candidates.
  double bytes_reordered_in_a_second = 1e10;
  // A stamp of the kernels' own code, which changes where that does.
  std::string build = {};
};

enum class MemoryUse : std::uint8_t {
  device,  // kernels read and write it; contents undefined
  staging  // host memory that copies may read and write asynchronously
};

class PLEXAURA_API Backend : public std::enable_shared_from_this<Backend> {
 public:
  Backend();
  virtual ~Backend();

  // Held by a thread that compiles for this or, where its memory is not host memory, uses it in any other way while
  // other threads may do so, too. A backend that passes calls on to another one has its turn.
  virtual std::recursive_mutex& turn() const { return turn_; }

  virtual const BackendInfo& info() const = 0;

  // Any number of bytes, 0 too. Throws DeviceError that says what was asked and what there is.
  virtual std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) = 0;

  // Enqueues a copy between device and staging memory, or within one. Staging memory must stay untouched
  // until the copy is done.
  virtual void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) = 0;

  virtual std::unique_ptr<Event> make_event() = 0;

  // Calls body(), which launches kernels, enqueues copies and records events, and captures instead of running them.
  // A stream is held by events of the same body alone, and the copy stream takes part from the first of these on:
  // nothing in the recording is ordered with what stands in that stream otherwise. Any other use of streams,
  // allocation, and what waits for events, asks for them or signals them throw InternalError in this thread
  // meanwhile. Null where it cannot record, as by default: nothing was called.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& body);

  // Regions of more than one node that end at `last`, the preferred first. The engine takes those that save
  // most by the estimates of their candidates, if nobody else reads their inner values. A region that
  // propose() refuses falls apart into its nodes. None by default.
  virtual std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const;

  // Returns the candidates for a region. Must be cheap and generate no code. If it returns none, a region of several nodes
  // is computed node by node, and the host computes a single op with its reference kernel. For a collective op a backend
  // usually returns none, and the host sums. A backend that offers a kernel for a collective op connects the ranks itself;
  // then the backends of all ranks must offer one. Such a kernel has the row-major layout, is never measured, and may be
  // recorded.
  virtual std::vector<Candidate> propose(const RegionQuery& query) const = 0;

 private:
  friend class BackendUse;
  mutable std::recursive_mutex turn_;
  std::shared_ptr<std::atomic<bool>> exists_;
};

// The region of one node.
PLEXAURA_API Region single(const Graph& graph, NodeId node);

}  // namespace plexaura
