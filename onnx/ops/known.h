#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/graph/graph.h"

namespace plexaura::onnx {

// A small file can describe values of any size. So there are limits for what is computed while a graph is built. They
// count bytes and estimated operations and no time, so that each machine makes the same graph.
struct BuildLimits {
  // Values beyond these are not computed early, but when the graph runs.
  std::int64_t bytes_of_value = std::int64_t{64} << 20;
  std::int64_t bytes = std::int64_t{1} << 30;       // bytes of all values
  std::int64_t operations = std::int64_t{1} << 32;  // operations for all values
  // A graph with more constants is an error. Constants whose elements are in the file do not count.
  std::int64_t constant_bytes = std::int64_t{2} << 30;
  // A file whose loops and branches become more nodes of the file than this is an error.
  std::int64_t unrolled_nodes = 100'000;
};

// Computes values that depend only on constants, by the reference kernels of the ops that they are made of.
class KnownValues {
 public:
  // The graph must outlive this object.
  explicit KnownValues(const Graph& graph, const BuildLimits& limits = {}) : graph_(graph), limits_(limits) {}

  // Returns a value, and keeps what it has computed on the way until forget() is called. Returns nothing if the
  // value depends on a leaf that is not a constant, on a random or collective op or on one without a reference
  // kernel, or if a limit is exceeded.
  std::optional<Tensor> compute(const Node& node);
  void forget();

 private:
  const Tensor& value_of(Value value) const;
  bool run(NodeId id);
  bool takes(const NodeRecord& record);

  const Graph& graph_;
  BuildLimits limits_;
  std::map<NodeId, std::vector<Tensor>> outputs_;
  std::set<NodeId> refused_;
  std::int64_t bytes_ = 0;  // bytes of all values so far
  std::int64_t operations_ = 0;
};

}  // namespace plexaura::onnx
