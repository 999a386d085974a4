#pragma once

#include "core/export.h"
#include "core/graph/op.h"

namespace plexaura {

// e^x divided by its sum along the axis (negative ones count from the back); the largest element is
// subtracted first, so that nothing overflows. Same type and shape as x; floating only.
PLEXAURA_API Node softmax(Operand x, std::int64_t axis = -1);

// log(softmax(x)), computed without taking the logarithm of a small number.
PLEXAURA_API Node log_softmax(Operand x, std::int64_t axis = -1);

// The class behind both. The axis is counted from the front.
class PLEXAURA_API Softmax final : public Op {
 public:
  enum class Kind { softmax, log_softmax };
  Softmax(Kind kind, std::int64_t axis) : kind_(kind), axis_(axis) {}

  std::string_view name() const override { return kind_ == Kind::softmax ? "softmax" : "log_softmax"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void describe(Description& description) const override { description.add("axis", axis_); }
  std::int64_t axis() const { return axis_; }

 private:
  Kind kind_;
  std::int64_t axis_;
};

}  // namespace plexaura
