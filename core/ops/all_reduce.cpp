#include "core/ops/all_reduce.h"

#include <fmt/format.h>

#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

class AllReduceSum final : public Op {
 public:
  std::string_view name() const override { return "all_reduce_sum"; }
  OpTraits traits() const override { return {.collective = true}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 1);
    const DType dtype = inputs[0].dtype;
    if (dtype != DType::float64 && dtype != DType::float32 && dtype != DType::int64)
      throw RuleError(
          fmt::format("sums float64, float32 and int64 over ranks, not {}; use cast()", name_of(dtype)));
    return {inputs[0]};
  }

  std::vector<Node> vjp(const VjpRequest& request) const override {
    return {all_reduce_sum(request.grad_outputs[0])};
  }
};

}  // namespace

Node all_reduce_sum(Operand x) { return apply(std::make_shared<AllReduceSum>(), {x}); }

}  // namespace plexaura
