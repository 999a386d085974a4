#pragma once

#include <memory>
#include <optional>

#include "training/data/dataset.h"

namespace plexaura::testing {

// Returns the first `size` images of MNIST if PLEXAURA_DATA names a folder that has them, and otherwise drawn
// ones: a pattern for each class, plus noise. Reading sample `broken` throws UserError.
std::shared_ptr<const Dataset> make_small_data(std::int64_t size, std::optional<std::int64_t> broken = {});

}  // namespace plexaura::testing
