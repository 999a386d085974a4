#pragma once

#include <string>
#include <vector>

#include "models/layers/layer.h"

namespace plexaura::layers {

// Layers without parameters, each of which calls one builder function.

// An elementwise function by name: relu, sigmoid or tanh. Accepts any shape.
class Activation final : public Layer {
 public:
  explicit Activation(std::string_view name);  // UserError for an unknown name, with a suggestion
  Node operator()(Operand x) const override;

  static const std::vector<std::string>& names();

 private:
  std::string name_;
};

// [N, ...] -> [N, product of the rest].
class Flatten final : public Layer {
 public:
  Node operator()(Operand x) const override;
};

// In a graph of Mode::train, sets elements to 0 with probability p and divides the others by 1 - p. In other
// graphs returns x itself.
class Dropout final : public Layer {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  Node operator()(Operand x) const override;

 private:
  double p_;
};

// Scales each sample to mean 0 and variance 1 over its last axis: (x - mean) / sqrt(variance + 1e-5).
class Standardise final : public Layer {
 public:
  Node operator()(Operand x) const override;
};

}  // namespace plexaura::layers
