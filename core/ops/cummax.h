#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"
#include "core/ops/ordering.h"

namespace plexaura {

// The largest, or smallest, element so far along an axis: element i of the values is the largest of the elements 0 to i,
// and element i of the indices (int64) is its place. From the first NaN on, the values are NaN. The last one of equal
// elements, or of the NaNs so far, is chosen, and gets the gradient. Any dtype. Negative axes count from the end.
PLEXAURA_API ValuesAndIndices cummax(Operand x, std::int64_t axis);
PLEXAURA_API ValuesAndIndices cummin(Operand x, std::int64_t axis);

// The indices that cummax() and cummin() return. No gradient.
PLEXAURA_API Node argcummax(Operand x, std::int64_t axis);
PLEXAURA_API Node argcummin(Operand x, std::int64_t axis);

struct ArgCumMaxOptions {
  std::int64_t axis = 0;  // axis, counted from the front
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
