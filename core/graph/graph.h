#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph_life.h"
#include "core/graph/leaf.h"
#include "core/graph/node.h"
#include "core/graph/op.h"
#include "core/graph/origin.h"

namespace plexaura {

enum class Mode : std::uint8_t { train, inference };

struct NodeRecord {
  std::shared_ptr<const Op> op;
  std::vector<Value> inputs;
  std::vector<TensorType> types;  // of the outputs
  Origin origin;
};

// After a run, the buffer holds `next`; every read within the run sees the old value.
struct Update {
  Value buffer;
  Value next;
};

// An arena of nodes in topological order: an op can only name older nodes. Nodes are never changed or
// removed; a Graph does not move, because handles point to it. Built by one thread at a time; a finished
// graph may be read by many. Everything that is impossible (shapes, types, a second leaf of the same name and
// another type) throws UserError right here, with the line of the user's code.
class PLEXAURA_API Graph {
 public:
  // `mode` is what layers like dropout and batch norm look at when they build themselves.
  explicit Graph(Mode mode = Mode::train) : life_(GraphLife::begin(*this)), mode_(mode) {}
  ~Graph() { life_.end(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  using Where = std::source_location;

  // Leaves. Asking again for a parameter or buffer of the same name gives the same node: that is how weights
  // are tied.
  Node input(std::string name, TensorType type, Where where = Where::current());
  Node parameter(std::string name, TensorType type, Where where = Where::current());
  Node buffer(std::string name, TensorType type, Where where = Where::current());
  Node constant(Tensor value, Where where = Where::current());
  Node step_scalar(StepScalar scalar, DType dtype, Where where = Where::current());
  Node arena_slice(ArenaSlice slice, DType dtype, Where where = Where::current());

  // `next` has the buffer's type. One update per buffer or arena slice.
  void update(Node buffer, Node next, Where where = Where::current());

  // The one door through which ops enter. The origin is the override, if one is set, else `where`.
  std::vector<Node> append(std::shared_ptr<const Op> op, std::span<const Node> inputs, Where where);

  // The place of a node made now: the override, if one is set, else `where`, with the place that Called names; under
  // the current scope.
  Origin origin_of(Where where) const;

  Mode mode() const { return mode_; }
  const GraphLife& life() const { return life_; }
  std::size_t size() const { return records_.size(); }
  const NodeRecord& record(NodeId id) const { return records_[id]; }
  const TensorType& type(Value value) const { return records_[value.node].types[value.output]; }
  std::span<const Update> updates() const { return updates_; }

  // A number that names the next random op: from the scope path and its ordinal there, so that it is the same
  // whatever the batch size and whatever passes do.
  std::int64_t next_stream();

  // While it lives, nodes are made under a longer scope path: the current one and `name`; or, Absolute, under
  // `path` alone, which is a module's own and holds wherever it is called from (an empty one changes
  // nothing).
  class PLEXAURA_API Scope {
   public:
    struct Absolute {};
    Scope(Graph& graph, std::string_view name);
    Scope(Graph& graph, Absolute, std::string_view path);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::string outer_;
  };

  // While it lives, nodes have this place instead of the line that made them: a YAML position, or what a
  // gradient belongs to. An empty scope in it stands for the current one.
  class PLEXAURA_API WithOrigin {
   public:
    WithOrigin(Graph& graph, Origin origin);
    ~WithOrigin();
    WithOrigin(const WithOrigin&) = delete;
    WithOrigin& operator=(const WithOrigin&) = delete;

   private:
    Graph& graph_;
    std::optional<Origin> outer_;
  };
  bool has_origin() const { return origin_.has_value(); }  // whether a WithOrigin is alive

  // While it lives, the place of a node also names the line `where` that called the model; the outermost one counts.
  class PLEXAURA_API Called {
   public:
    Called(Graph& graph, Where where);
    ~Called();
    Called(const Called&) = delete;
    Called& operator=(const Called&) = delete;

   private:
    Graph& graph_;
    std::optional<Where> outer_;
  };

 private:
  Node leaf(Leaf leaf, Where where);
  Node named_leaf(LeafKind kind, std::string name, TensorType type, Where where);

  GraphLife& life_;
  Mode mode_;
  std::deque<NodeRecord> records_;
  std::vector<Update> updates_;
  std::map<std::string, NodeId, std::less<>> named_;
  std::map<std::string, std::int64_t, std::less<>> streams_;
  std::string scope_;
  std::optional<Origin> origin_;
  std::optional<Where> caller_;
};

}  // namespace plexaura
