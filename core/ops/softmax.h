#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// e^x divided by its sum along the axis (negative axes count from the end). The largest element is subtracted
// first, so that nothing overflows. The result has x's type and shape; floating only.
PLEXAURA_API Node softmax(Operand x, std::int64_t axis = -1);

// log(softmax(x)), computed without the logarithm of a small number.
PLEXAURA_API Node log_softmax(Operand x, std::int64_t axis = -1);

struct SoftmaxOptions {
  std::int64_t axis = 0;  // counted from the front
  static void fields(auto& self, auto& visitor) { visitor("axis", self.axis); }
};

// The op of softmax and log_softmax.
class PLEXAURA_API SoftmaxOp final : public OpOf<SoftmaxOp, SoftmaxOptions> {
 public:
  enum class Kind { softmax, log_softmax };
  SoftmaxOp(Kind kind, SoftmaxOptions options) : OpOf(options), kind_(kind) {}

  std::string_view name() const override { return kind_ == Kind::softmax ? "softmax" : "log_softmax"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;

 private:
  Kind kind_;
};

}  // namespace plexaura
