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

// One list of derivatives for each input. It is empty if the input is not floating or no gradient was asked
// for.
using Derivatives = std::vector<std::vector<double>>;

// Computes the gradients of sum(cotangents * outputs) with respect to the inputs of a graph, asked for in
// several ways.
class GradientProgram {
 public:
  // One way to ask for gradients: with respect to some inputs, with cotangents for some outputs.
  struct Way {
    std::string name;             // "wanted alone", "without a cotangent of output 1"
    std::vector<bool> variables;  // by input: true if its gradient is asked for
    std::vector<bool> outputs;    // by output: true if it has a cotangent
    std::vector<Node> grads;      // by input; empty if it has no gradient
  };

  struct Asking {
    std::string_view label_of_cotangents;
    // If there are at most this many variables, each subset of them is asked for. Otherwise, each one alone
    // and all but one.
    std::size_t most_with_all_subsets = 1;
  };

  // Adds a cotangent input for each output, and differentiates with respect to the inputs that existed
  // before. The first way asks for everything at once. Throws what a vjp throws.
  GradientProgram(Graph& graph, GraphInputs& inputs, std::vector<Node> outputs, const Asking& asking,
                  Random& random, Backend& backend);

  const std::vector<Way>& ways() const { return ways_; }
  std::size_t variables() const { return variables_; }  // the number of inputs without the cotangents
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
