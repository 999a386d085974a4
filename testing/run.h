#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "core/vm/vm.h"
#include "testing/padding.h"

namespace plexaura::testing {

// A program for looking at values: compiles some outputs of a graph for a backend and can run them any number
// of times. The graph has inputs but no parameters and need not outlive the constructor; the backend must
// outlive the runner. One thread at a time.
class Runner {
 public:
  Runner(const Graph& graph, const std::vector<Node>& outputs, Backend& backend,
         const CompileOptions& options = {});

  // Feeds the graph's inputs in the order in which they were made.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, const StepBlock& block = {});

  // What the last run left beside the elements of every value; needs options.keep_all.
  PaddingReport padding() const { return check_padding(*program_, *workspace_, backend_); }

 private:
  Backend& backend_;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<Workspace> workspace_;
  std::vector<std::string> names_;  // of the inputs that the program reads, and their place in the graph
  std::vector<std::size_t> places_;
  std::size_t inputs_ = 0;
  std::size_t outputs_ = 0;
  std::unique_ptr<VM> vm_;
};

}  // namespace plexaura::testing
