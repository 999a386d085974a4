#pragma once

#include <optional>

#include "models/layers/layer.h"

namespace plexaura::layers {

struct LinearOptions {
  bool bias = true;
  Initialiser weight = Initialiser::lecun_uniform();  // uniform within 1 / sqrt(in), as in PyTorch
  // Initial values of the bias; empty: uniform within 1 / sqrt(in).
  std::optional<Initialiser> bias_start = {};
  // The weight of another layer, which this layer uses too; the other layer must outlive this one. Null: the
  // layer has its own weight.
  Parameter* tied_weight = nullptr;
};

// y = x weight^T + bias: x [..., in] -> [..., out].
// Parameters: weight [out, in], bias [out].
class Linear final : public Layer {
 public:
  Linear(std::int64_t in, std::int64_t out, LinearOptions options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t, std::int64_t) const override {
    return incremental_by_position(*this);
  }

  Parameter& weight() const { return tied_weight_ != nullptr ? *tied_weight_ : *weight_; }

 private:
  Parameter* tied_weight_;
  std::unique_ptr<Parameter> weight_;
  std::unique_ptr<Parameter> bias_;
};

}  // namespace plexaura::layers
