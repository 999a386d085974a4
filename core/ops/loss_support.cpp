#include "core/ops/loss_support.h"

#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

Graph& graph_of(std::string_view loss, std::initializer_list<Operand> operands) {
  const TensorType type = operands.begin()->node().type();
  for (const Operand& operand : operands)
    require_that(operand.node().type() == type, loss, operands,
                 "the operands must have one type and shape; cast or reshape one of them");
  require_that(is_floating(type.dtype), loss, operands, "the operands must be floating; use cast()");
  return operands.begin()->node().graph();
}

}  // namespace

LossOf::LossOf(std::string_view loss, std::initializer_list<Operand> operands)
    : guard_(graph_of(loss, operands),
             operands.begin()->node().graph().origin_of(operands.begin()->where())) {}

Node reduce_losses(const Node& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  const bool has_mean = reduction == Reduction::mean && losses.shape().elements() > 0;
  return has_mean ? mean(losses) : sum(losses);
}

}  // namespace plexaura
