#include "training/data/images/image_operation.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

ImageOperation::~ImageOperation() = default;

void ImageOperation::apply_to_mask(ClassMask& /*mask*/, Random& /*random*/) const {
  throw UserError(
      fmt::format("{}: the operation has no apply_to_mask(); override it, or let mask_rule() return "
                  "refused",
                  name()));
}

std::optional<std::int64_t> side_after(const ImageOperations& operations) {
  std::optional<std::int64_t> side;
  for (const auto& operation : operations)
    if (const auto changed = operation->side()) side = changed;
  return side;
}

}  // namespace plexaura
