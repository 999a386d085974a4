#pragma once

#include "core/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct MatMulOptions {
  bool transpose_a = false;  // a is [..., K, M]
  bool transpose_b = false;  // b is [..., N, K]
};

// The matrix product of the last two axes: a [..., M, K] times b [..., K, N] is [..., M, N]; the axes in
// front broadcast. Floating, one dtype.
PLEXAURA_API Node matmul(Operand a, Operand b, MatMulOptions options = {});

class PLEXAURA_API MatMul final : public Op {
 public:
  explicit MatMul(MatMulOptions options) : options_(options) {}

  std::string_view name() const override { return "matmul"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void describe(Description& description) const override;
  const MatMulOptions& options() const { return options_; }

 private:
  MatMulOptions options_;
};

}  // namespace plexaura
