#pragma once

#include <memory>
#include <vector>

#include "core/compile/compile.h"
#include "core/params/parameter_store.h"
#include "core/vm/vm.h"
#include "tests/support/random_graph/sketch.h"

namespace plexaura::testing {

// Computes some values of a graph with inputs and parameters.
class GraphRunner {
 public:
  GraphRunner(const Graph& graph, const std::vector<SketchLeaf>& leaves, const std::vector<Node>& outputs,
              Backend& backend, const CompileOptions& options);

  // `values` has one tensor for each leaf.
  std::vector<Tensor> operator()(const std::vector<Tensor>& values);
  const Program& program() const { return *program_; }

 private:
  const std::vector<SketchLeaf>& leaves_;
  std::size_t outputs_;
  std::shared_ptr<const Program> program_;
  ParameterStore store_;
  std::unique_ptr<VM> vm_;
};

}  // namespace plexaura::testing
