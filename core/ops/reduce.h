#pragma once

#include <vector>

#include "core/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct ReduceOptions {
  std::vector<std::int64_t> axes = {};  // negative ones count from the back; empty means all axes
  bool keepdims = false;           // reduced axes stay, with extent 1
};

// The sum over axes. Numbers of any dtype but bool; float32 and below are added up in a wider type.
PLEXAURA_API Node sum(Operand x, ReduceOptions options = {});
// The mean over axes; NaN where there is nothing to average. Floating only.
PLEXAURA_API Node mean(Operand x, ReduceOptions options = {});

// x summed down to a shape that broadcasts to x's: the adjoint of broadcasting. x itself where the shapes are equal.
PLEXAURA_API Node sum_to(Operand x, const Shape& shape);

// The class behind sum and mean. Axes are normalised, sorted, and never empty but for rank 0.
class PLEXAURA_API Reduce final : public Op {
 public:
  enum class Kind { sum, mean };
  Reduce(Kind kind, ReduceOptions options) : kind_(kind), options_(std::move(options)) {}

  std::string_view name() const override { return kind_ == Kind::sum ? "sum" : "mean"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void describe(Description& description) const override;
  const ReduceOptions& options() const { return options_; }

 private:
  Kind kind_;
  ReduceOptions options_;
};

}  // namespace plexaura
