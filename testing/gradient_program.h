#pragma once

#include <string>
#include <vector>

#include "testing/run.h"
#include "testing/values.h"

namespace plexaura::testing {

// The inputs of a graph with their values, in the order in which they were made.
struct GraphInputs {
  std::vector<Node> nodes;
  std::vector<Tensor> values;
  std::vector<std::string> labels;

  Node add(Graph& graph, std::string label, Tensor value);
  bool is_variable(std::size_t input) const { return is_floating(nodes[input].dtype()); }
};

// Derivatives by each input; those of inputs that are no variables, or are not asked for, are empty.
using Derivatives = std::vector<std::vector<double>>;

// The gradients of sum(cotangents * outputs) of a function by the inputs of its graph, asked for in several
// ways.
class GradientProgram {
 public:
  // One way to ask.
  struct Way {
    std::string name;             // "wanted alone", "without a cotangent of output 1"
    std::vector<bool> variables;  // by input: whether its gradient is wanted
    std::vector<bool> outputs;    // by output: whether it has a cotangent
    std::vector<Node> grads;      // by input; empty where there is none
  };

  struct Asking {
    std::string_view label_of_cotangents;
    // Where there are no more variables than this each set of them is asked for; otherwise each alone, and all but one.
    std::size_t most_with_all_subsets = 1;
  };

  // Adds a cotangent input for each output, and differentiates by the inputs that were there before. The
  // first way is everything at once. Throws what a vjp throws.
  GradientProgram(Graph& graph, GraphInputs& inputs, std::vector<Node> outputs, const Asking& asking,
                  Random& random, Backend& backend);

  const std::vector<Way>& ways() const { return ways_; }
  std::size_t variables() const { return variables_; }  // so many inputs were there before the cotangents
  // Of all outputs, one behind the other.
  std::vector<double> random_cotangents(Random& random) const;

  // What each way gives under these cotangents.
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
