#include "core/ops/indices.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/op.h"

namespace plexaura {

void require_indices(const TensorType& indices) {
  if (indices.dtype != DType::int64)
    throw RuleError(fmt::format("the indices must be int64, not {}; cast() them", name_of(indices.dtype)));
}

void require_inside(const HostView& indices, std::int64_t extent) {
  const auto* values = indices.as<std::int64_t>();
  for (std::int64_t i = 0; i < indices.elements(); ++i) {
    if (values[i] >= 0 && values[i] < extent) continue;
    if (extent == 0)
      throw UserError(fmt::format(
          "element {} of the indices is {}, but the axis is empty; give it elements or no indices", i,
          values[i]));
    throw UserError(
        fmt::format("element {} of the indices is {}; an index must be from 0 to {}, one less than the "
                    "extent of the axis: check the indices before they are fed",
                    i, values[i], extent - 1));
  }
}

}  // namespace plexaura
