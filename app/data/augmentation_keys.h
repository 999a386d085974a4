#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/config/key_texts.h"
#include "training/data/images/image_operation.h"

namespace plexaura {

// Makes the operations of the list `data.augmentation`. `image_size` is the width and height of a sample. Throws
// UserError, with line and column, for an element that does not name one operation, for a wrong key, and if the
// images would have another size.
ImageOperations read_augmentation(const Section& data, const std::vector<Section>& list,
                                  std::int64_t image_size);

// Returns the names of the operations that masks of classes can follow.
std::vector<std::string> mask_operation_names();

// Returns the descriptions of the keys of all operations.
std::vector<KeyText> augmentation_key_texts();

}  // namespace plexaura
