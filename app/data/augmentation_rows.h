#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/config/keys.h"
#include "training/data/images/image_operation.h"

// The table of the operations in `data.augmentation`: see augmentation_keys.h.
namespace plexaura {

// The keys of an operation, and a function that makes the operation from the members that the keys set.
struct OperationReader {
  std::vector<Key> keys;
  std::function<std::shared_ptr<const ImageOperation>()> make;
};

// An operation: its name, and a function that opens its table of keys for samples of `image_size` pixels.
struct OperationRow {
  std::string name;
  OperationReader (*open)(std::int64_t image_size);
};

// Returns all operations, in the order of the descriptions.
const std::vector<OperationRow>& operation_rows();

}  // namespace plexaura
