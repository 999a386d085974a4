#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/shape.h"
#include "models/config/config.h"

namespace plexaura {

// Returns a JSON line about a training step on a GPU that need not exist: the least seconds that it takes,
// and its calls, launches of graphs and bytes, like --dry-run --device. Samples are bytes, which the model
// normalises.
std::string described_step(const Config& config, const Shape& sample, std::int64_t classes,
                           const std::string& backend, const std::string& device);

}  // namespace plexaura
