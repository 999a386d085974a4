#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/ops/ordering.h"

namespace plexaura {

// The largest, or smallest, element so far along an axis: element i of the result is that of the elements 0 to i, with
// its index (int64). From the first NaN on, the values are NaN. Of equal elements, and of NaNs, it is the last one so
// far, which gets the gradient. Any dtype. Negative axes count from the end.
PLEXAURA_API ValuesAndIndices cummax(Operand x, std::int64_t axis);
PLEXAURA_API ValuesAndIndices cummin(Operand x, std::int64_t axis);

// Only the indices. No gradient.
PLEXAURA_API Node argcummax(Operand x, std::int64_t axis);
PLEXAURA_API Node argcummin(Operand x, std::int64_t axis);

struct ArgCumMaxOptions {
  std::int64_t axis = 0;  // from the front
  bool smallest = false;
  static void fields(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("smallest", self.smallest);
  }
};

class PLEXAURA_API ArgCumMax final : public OpOf<ArgCumMax, ArgCumMaxOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "argcummax"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
