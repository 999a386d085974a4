#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct CumsumOptions {
  std::int64_t axis = 0;   // negative axes count from the back
  bool exclusive = false;  // element i is the sum of the elements before i, without i
  bool reverse = false;    // sums begin at the end of the axis
  static void fields(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("exclusive", self.exclusive);
    visitor("reverse", self.reverse);
  }
};

// Cumulative sums along an axis: element i is the sum of the elements 0 to i. The result has the type and
// shape of x. Any dtype but bool. float32, float16 and bfloat16 are added up in double. A sum of integers that the
// dtype of x cannot hold wraps around; cast() x to a wider dtype to avoid that.
PLEXAURA_API Node cumsum(Operand x, CumsumOptions options);
inline Node cumsum(Operand x, WrittenInteger auto axis) {
  return cumsum(x, {.axis = static_cast<std::int64_t>(axis)});
}

class PLEXAURA_API Cumsum final : public OpOf<Cumsum, CumsumOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "cumsum"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
