#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Which values of a graph are read by whom; built once per compile.
class PLEXAURA_API Uses {
 public:
  explicit Uses(const Graph& graph, std::span<const Value> kept);
  const std::vector<NodeId>& readers(Value value) const;
  bool kept(Value value) const;  // an output or update of the program: seen from outside whatever the readers
  bool only_read_by(Value value, NodeId reader) const {
    return !kept(value) && readers(value) == std::vector{reader};
  }

 private:
  std::vector<std::vector<std::vector<NodeId>>> readers_;
  std::vector<std::vector<bool>> kept_;
};

}  // namespace plexaura
