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
  std::vector<TensorType> types;  // the types of the node's outputs
  Origin origin;
};

// A change of a buffer by a run. After the run, the buffer holds `next`. Every read within the run sees the
// old value.
struct Update {
  Value buffer;
  Value next;
};

// An arena of nodes in topological order: an op can only refer to older nodes. Nodes are never changed or
// removed. A Graph cannot be moved, because handles point to it. One thread at a time builds it; several
// threads may read a finished graph. Impossible nodes (wrong shapes or types, a second leaf of the same name
// with another type) throw UserError when they are added, with the line of the user's code.
class PLEXAURA_API Graph {
 public:
  // Layers such as dropout and batch norm read `mode` when they are built.
  explicit Graph(Mode mode = Mode::train) : life_(GraphLife::begin(*this)), mode_(mode) {}
  ~Graph() { life_.end(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  using Where = std::source_location;

  // Add leaves. Another call for a parameter or buffer of the same name returns the same node: this is how
  // weights are tied.
  Node input(std::string name, TensorType type, Where where = Where::current());
  Node parameter(std::string name, TensorType type, Where where = Where::current());
  Node buffer(std::string name, TensorType type, Where where = Where::current());
  Node constant(Tensor value, Where where = Where::current());
  Node step_scalar(StepScalar scalar, DType dtype, Where where = Where::current());
  Node arena_slice(ArenaSlice slice, DType dtype, Where where = Where::current());
  // Adds a leaf that stands for operand `number` of an op. The op will hold the nodes that are computed from
  // it: see Subgraph.
  Node operand(std::size_t number, TensorType type, Where where = Where::current());

  // Declares the value of a buffer or arena slice after a run. `next` has the buffer's type. There may be one
  // update for each buffer or arena slice.
  void update(Node buffer, Node next, Where where = Where::current());

  // Appends an op. All ops enter the graph through this function. The origin is that of the living WithOrigin, if there
  // is one, and otherwise `where`. Throws UserError if an input belongs to another graph, or if the op's shape rule
  // refuses the inputs.
  std::vector<Node> append(std::shared_ptr<const Op> op, std::span<const Node> inputs, Where where);

  // Returns the origin of a node that is made now: that of the living WithOrigin, if there is one, and
  // otherwise `where`, with the line of the living Called. It has the current scope, unless it has one already.
  Origin origin_of(Where where) const;

  Mode mode() const { return mode_; }  // inference while an Evaluating lives
  const GraphLife& life() const { return life_; }
  std::size_t size() const { return records_.size(); }
  const NodeRecord& record(NodeId id) const { return records_[id]; }
  const TensorType& type(Value value) const { return records_[value.node].types[value.output]; }
  std::span<const Update> updates() const { return updates_; }

  // Returns a number that identifies the next random op. It is computed from the scope path and the op's
  // ordinal there, so that it depends neither on the batch size nor on passes.
  std::int64_t next_stream();

  // While a Scope lives, new nodes get a longer scope path: the current path and `name`. With Absolute they get `path`
  // itself: the path of a module, which is the same wherever the module is called. An empty `path` changes nothing.
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

  // While a WithOrigin lives, new nodes get this origin instead of the C++ line that makes them: a position in a YAML
  // file, or the origin of the node whose gradient is built. If its scope is empty, the current scope is used.
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
  bool has_origin() const { return origin_.has_value(); }  // true while a WithOrigin lives

  // While a Called lives, the origins of new nodes also name the line `where` that called the model. If several such
  // objects live, the outermost one counts.
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

  // While an Evaluating lives, layers are built as for inference: dropout keeps everything, and batch norm reads its
  // running statistics and does not change them. It is for a frozen part of a graph that trains, such as a teacher.
  class PLEXAURA_API Evaluating {
   public:
    explicit Evaluating(Graph& graph);
    ~Evaluating();
    Evaluating(const Evaluating&) = delete;
    Evaluating& operator=(const Evaluating&) = delete;

   private:
    Graph& graph_;
    Mode outer_;
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
