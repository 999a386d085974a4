#pragma once

#include <string>
#include <vector>

#include "models/config/keys.h"
#include "models/layers/functional.h"
#include "models/layers/linear.h"
#include "models/zoo/model.h"

namespace plexaura {

struct MlpOptions {
  std::vector<std::int64_t> hidden;  // widths of the hidden layers
  std::string activation = "relu";   // activation of the hidden layers: see layers::Activation
  bool sigmoid_outputs = false;      // true: applies a sigmoid to the outputs
  bool standardise = false;  // true: scales the input of every layer to mean 0 and variance 1 for each sample
};

// A multilayer perceptron. Samples of any shape are flattened.
// Parameters: fc1.weight [hidden 1, inputs], fc1.bias, fc2.weight, …
class Mlp final : public Model {
 public:
  Mlp(ModelInfo info, const MlpOptions& options);

  void members(MemberVisitor& visit) override;

 protected:
  Node forward(Operand x) const override;

 private:
  layers::Flatten flatten_;
  std::vector<std::unique_ptr<layers::Linear>> linear_;
  layers::Activation activation_;
  layers::Standardise standardise_layer_;
  layers::Activation sigmoid_{"sigmoid"};
  bool sigmoid_outputs_;
  bool standardise_;
};

// Returns the keys of the section `model` that fill the options.
std::vector<Key> mlp_keys(MlpOptions& options);

std::unique_ptr<Model> make_mlp(ModelInfo info, const MlpOptions& options, const Section& yaml);

}  // namespace plexaura
