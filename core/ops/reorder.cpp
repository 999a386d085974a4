#include "core/ops/reorder.h"

#include <fmt/format.h>

#include "core/ops/elementwise.h"

namespace plexaura {

std::vector<TensorType> Reorder::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  if (to().rank() != inputs[0].shape.rank())
    throw RuleError(fmt::format("the layout has {} axes; it must have as many as the value", to().rank()));
  return {inputs[0]};
}

}  // namespace plexaura
