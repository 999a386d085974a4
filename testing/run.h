#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "core/vm/vm.h"
#include "testing/padding.h"

namespace plexaura::testing {

// Compiles some outputs of a graph for a backend and runs them any number of times, so that a test can look
// at their values. The graph has inputs but no parameters, and need not outlive the constructor. The backend
// must outlive the runner. Only one thread at a time may use it.
class Runner {
 public:
  Runner(const Graph& graph, const std::vector<Node>& outputs, Backend& backend,
         const CompileOptions& options = {});

  // Runs the program. `inputs` are the values of the graph's inputs, in the order in which they were added.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, const StepBlock& block = {});

  // Checks the padding of every value after the last run. Requires options.keep_all.
  PaddingReport padding() const { return check_padding(*program_, *workspace_, backend_); }

 private:
  Backend& backend_;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<Workspace> workspace_;
  // The names of the inputs that the program reads; `places_` has their positions in the graph.
  std::vector<std::string> names_;
  std::vector<std::size_t> places_;
  std::size_t inputs_ = 0;
  std::size_t outputs_ = 0;
  std::unique_ptr<VM> vm_;
};

}  // namespace plexaura::testing
