#pragma once

#include <string>
#include <vector>

#include "testing/run.h"
#include "testing/values.h"

namespace plexaura::testing {

// The inputs of a graph and their values, in the order in which they were added.
struct GraphInputs {
  std::vector<Node> nodes;
  std::vector<Tensor> values;
  std::vector<std::string> labels;

  Node add(Graph& graph, std::string label, Tensor value);
};

// A list of derivatives for each input. It is empty if the input is not floating or its gradient was not
// wanted.
using Derivatives = std::vector<std::vector<double>>;

// Computes the gradients of sum(cotangents * outputs) with respect to the inputs of a graph. The gradients
// are built in several ways, which must agree.
class GradientProgram {
 public:
  // One way to build gradients: with respect to some inputs, with cotangents for some outputs.
  struct Way {
    std::string name;             // such as "wanted alone" or "without a cotangent of output 1"
    std::vector<bool> variables;  // for each input: true if its gradient is wanted
    std::vector<bool> outputs;    // for each output: true if it has a cotangent
    std::vector<Node> grads;      // the gradient of each input; empty if it has none
  };

  struct Asking {
    std::string_view label_of_cotangents;
    // The number of variables up to which each subset of them is wanted in turn. With more variables, each is
    // wanted alone, and all but each.
    std::size_t most_with_all_subsets = 1;
  };

  // Adds a cotangent input for each output, and differentiates with respect to the inputs that existed
  // before. The first way wants all gradients at once. Throws what a vjp throws.
  GradientProgram(Graph& graph, GraphInputs& inputs, std::vector<Node> outputs, const Asking& asking,
                  Random& random, Backend& backend);

  const std::vector<Way>& ways() const { return ways_; }
  std::size_t variables() const { return variables_; }  // number of the inputs that are not cotangents
  // Returns one cotangent for each element of all outputs, the outputs one after another.
  std::vector<double> random_cotangents(Random& random) const;

  // Returns the derivatives of each way for these cotangents.
  std::vector<Derivatives> derive(std::vector<Tensor> inputs, const std::vector<double>& cotangents,
                                  const StepBlock& block);

 private:
  void ask(Way way);
  void ask_for_some(const std::vector<std::size_t>& variables, std::size_t most_with_all_subsets);
  void ask_for(const std::vector<std::size_t>& variables);

  std::size_t variables_;
  std::vector<Node> inputs_;
  std::vector<std::string> labels_;
  std::vector<Node> outputs_;
  std::vector<Node> cotangents_;
  std::vector<Way> ways_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace plexaura::testing
