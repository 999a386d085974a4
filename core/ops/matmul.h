#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct MatMulOptions {
  bool transpose_a = false;  // true if a is [..., K, M]
  bool transpose_b = false;  // true if b is [..., N, K]

  static void fields(auto& self, auto& visitor) {
    visitor("transpose_a", self.transpose_a);
    visitor("transpose_b", self.transpose_b);
  }
};

// The matrix product of the last two axes: a [..., M, K] times b [..., K, N] is [..., M, N]. All other axes
// broadcast. Floating, one dtype.
PLEXAURA_API Node matmul(Operand a, Operand b, MatMulOptions options = {});

class PLEXAURA_API MatMul final : public OpOf<MatMul, MatMulOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "matmul"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::narrow}; }
};

}  // namespace plexaura
