#pragma once

#include <string>

#include "app/data/data_options.h"
#include "app/data/data_pair.h"
#include "models/config/config.h"

namespace plexaura {

// Open images of a fixed size: MNIST's files, and those of CIFAR. Throw UserError that names the file.
DataPair open_idx(const Section& data, const DataOptions& options);
DataPair open_cifar(const Section& data, const DataOptions& options);

// Returns a text such as "(value / 255 - 0.5) / 0.25".
std::string normalisation_text(const PixelScale& pixels);

}  // namespace plexaura
