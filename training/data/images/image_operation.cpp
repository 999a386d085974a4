#include "training/data/images/image_operation.h"

namespace plexaura {

ImageOperation::~ImageOperation() = default;

void ImageOperation::apply_to_mask(ClassMask& /*mask*/, Random& /*random*/) const {}

std::optional<std::int64_t> side_after(const ImageOperations& operations) {
  std::optional<std::int64_t> side;
  for (const auto& operation : operations)
    if (const auto changed = operation->side()) side = changed;
  return side;
}

}  // namespace plexaura
