#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct RecurrenceOptions {
  std::int64_t axis = 0;  // negative numbers count from the end
  bool reverse = false;   // true: the recurrence begins at the end of the axis
  static void fields(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("reverse", self.reverse);
  }
};

// The values y[i] = a[i] y[i - 1] + b[i] along an axis, with y[0] = b[0]: moving averages, discounted sums and state
// spaces. a and b have one type and shape; a[0] has no effect. Any dtype but bool. Floats of 32 and 16 bits are
// computed in double and rounded to their dtype; integers wrap around.
PLEXAURA_API Node linear_recurrence(Operand a, Operand b, RecurrenceOptions options = {});

// Cumulative products along an axis: element i is the product of the elements 0 to i. Any dtype but bool. The gradient
// is also correct if elements are 0. Negative axes count from the end.
PLEXAURA_API Node cumprod(Operand x, std::int64_t axis);

// Inputs: a, b. The axis of its options counts from the front.
class PLEXAURA_API LinearRecurrence final : public OpOf<LinearRecurrence, RecurrenceOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "linear_recurrence"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
