#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/shape.h"
#include "models/config/config.h"

namespace plexaura {

// What a step of training would enqueue on a GPU that need not be there, as a line of JSON: the least seconds that it takes,
// calls, launches of graphs, bytes. These are the figures of --dry-run --device. Samples are bytes, which the model normalises.
std::string described_step(const Config& config, const Shape& sample, std::int64_t classes,
                           const std::string& backend, const std::string& device);

}  // namespace plexaura
