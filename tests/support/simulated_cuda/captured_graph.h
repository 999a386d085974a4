#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/runtime/runtime.h"

// What was captured: nodes, and what each comes behind.

namespace plexaura::cuda::simulation {

struct EventState {
  std::uint64_t recorded = 0;         // how often
  std::uint64_t passed = 0;           // the last of these that was passed
  double time = 0;                    // of that, in seconds of the device
  runtime::Stream* stream = nullptr;  // of the last one
  std::uint64_t position = 0;         // behind how many tasks of that
};
using EventHandle = std::shared_ptr<EventState>;

// Bytes of memory, as pieces.
class Bytes {
 public:
  void add(const std::byte* begin, std::size_t bytes) { pieces_.emplace_back(begin, begin + bytes); }
  void unite();  // comes before meets()
  bool meets(const Bytes& other) const;

 private:
  std::vector<std::pair<const std::byte*, const std::byte*>> pieces_;
};

// What one node has used.
struct UsedBytes {
  Bytes read;
  Bytes written;
};

struct GraphNode {
  std::string name;
  std::function<void()> run = {};        // empty for an event
  EventHandle event = {};                // recorded by it; null for work
  bool forked = false;                   // on another stream than the captured one
  std::vector<std::size_t> behind = {};  // nodes that come first; so do those that come before these
};

class CapturedGraph {
 public:
  explicit CapturedGraph(std::vector<GraphNode> nodes);

  const std::vector<GraphNode>& nodes() const { return nodes_; }
  // In which they run: those that are forked as late as what waits for them allows, an order that CUDA may choose.
  const std::vector<std::size_t>& order() const { return order_; }
  bool forks() const;
  // When a node ends that begins as soon as it may, if each kernel takes a second.
  double end_of(std::size_t node) const { return ends_[node]; }
  double length() const;

  // InternalError where two nodes have used the same bytes, one of them to write, and neither comes behind the other.
  void check_races(std::vector<UsedBytes> used) const;
  bool comes_behind(std::size_t node, std::size_t other) const { return before_[node][other]; }

 private:
  void append(std::size_t node);  // to the order, and before it what it waits for

  std::vector<GraphNode> nodes_;
  std::vector<std::vector<bool>> before_;  // of each node: which ones come first
  std::vector<double> ends_;
  std::vector<std::size_t> order_;
  std::vector<bool> ordered_;
};

// A capture that goes on.
class Capturing {
 public:
  explicit Capturing(runtime::Stream* origin) : origin_(origin) { ends_[origin]; }

  bool takes_part(runtime::Stream* stream) const { return ends_.contains(stream); }
  void add(runtime::Stream* stream, GraphNode node);
  void mark(const EventHandle& event, runtime::Stream* stream) { marks_[event] = ends_.at(stream); }
  // False where the capture has not marked the event.
  bool hold(runtime::Stream* stream, const EventHandle& event);
  // InternalError where a stream was not joined.
  CapturedGraph end();

 private:
  using Ends = std::vector<std::size_t>;  // nodes that the next one comes behind

  runtime::Stream* origin_;
  std::map<runtime::Stream*, Ends> ends_;
  std::map<EventHandle, Ends> marks_;
  std::vector<GraphNode> nodes_;
};

}  // namespace plexaura::cuda::simulation
