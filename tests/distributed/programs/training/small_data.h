#pragma once

#include <memory>
#include <optional>

#include "training/data/dataset.h"

namespace plexaura::testing {

// The first `size` images of MNIST where PLEXAURA_DATA names a folder that has them, else drawn ones: a
// pattern per class, and noise. Reading sample `broken` throws UserError.
std::shared_ptr<const Dataset> make_small_data(std::int64_t size, std::optional<std::int64_t> broken = {});

}  // namespace plexaura::testing
