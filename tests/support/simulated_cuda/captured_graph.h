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

// A captured graph: its nodes, and the nodes that each of them depends on.

namespace plexaura::cuda::simulation {

struct EventState {
  std::uint64_t recorded = 0;         // number of times it was recorded
  std::uint64_t passed = 0;           // the last of these that has passed
  double time = 0;                    // time of that one, in seconds of the device
  runtime::Stream* stream = nullptr;  // stream of the last one
  std::uint64_t position = 0;         // number of tasks before it on that stream
};
using EventHandle = std::shared_ptr<EventState>;

// A set of bytes in memory, as ranges.
class Bytes {
 public:
  void add(const std::byte* begin, std::size_t bytes) { pieces_.emplace_back(begin, begin + bytes); }
  void unite();  // call it before meets()
  bool meets(const Bytes& other) const;

 private:
  std::vector<std::pair<const std::byte*, const std::byte*>> pieces_;
};

// The bytes that one node uses.
struct UsedBytes {
  Bytes read;
  Bytes written;
};

struct GraphNode {
  std::string name;
  std::function<void()> run = {};        // empty for an event
  EventHandle event = {};                // the event that the node records; null for work
  bool forked = false;                   // true if it is on another stream than the captured one
  std::vector<std::size_t> behind = {};  // the nodes that it depends on directly
};

class CapturedGraph {
 public:
  explicit CapturedGraph(std::vector<GraphNode> nodes);

  const std::vector<GraphNode>& nodes() const { return nodes_; }
  // The order in which nodes run. Forked nodes run as late as the nodes that wait for them allow, an order
  // that CUDA may choose.
  const std::vector<std::size_t>& order() const { return order_; }
  bool forks() const;
  // Returns the earliest time at which a node can end, in seconds after the graph has begun. Each kernel takes one
  // second.
  double end_of(std::size_t node) const { return ends_[node]; }
  double length() const;

  // Throws InternalError if two nodes use the same bytes, one of them writes these, and neither depends on
  // the other.
  void check_races(std::vector<UsedBytes> used) const;
  bool comes_behind(std::size_t node, std::size_t other) const { return before_[node][other]; }

 private:
  void append(std::size_t node);  // appends the node to the order, after those that it waits for

  std::vector<GraphNode> nodes_;
  std::vector<std::vector<bool>> before_;  // for each node, the nodes that it depends on, also indirectly
  std::vector<double> ends_;
  std::vector<std::size_t> order_;
  std::vector<bool> ordered_;
};

// A capture in progress.
class Capturing {
 public:
  explicit Capturing(runtime::Stream* origin) : origin_(origin) { ends_[origin]; }

  bool takes_part(runtime::Stream* stream) const { return ends_.contains(stream); }
  void add(runtime::Stream* stream, GraphNode node);
  void mark(const EventHandle& event, runtime::Stream* stream) { marks_[event] = ends_.at(stream); }
  // Returns false if the event was not recorded in this capture.
  bool hold(runtime::Stream* stream, const EventHandle& event);
  // Throws InternalError if a stream was not joined.
  CapturedGraph end();

 private:
  using Ends = std::vector<std::size_t>;  // the nodes that the next node depends on

  runtime::Stream* origin_;
  std::map<runtime::Stream*, Ends> ends_;
  std::map<EventHandle, Ends> marks_;
  std::vector<GraphNode> nodes_;
};

}  // namespace plexaura::cuda::simulation
