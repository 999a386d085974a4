#pragma once

#include <string_view>
#include <vector>

#include "core/params/parameter_store.h"
#include "training/programs/programs.h"

namespace plexaura::testing {

// A model with dropout that trains in milliseconds: the parameters of its store, and the function that builds
// it.
struct SmallModel {
  std::vector<ParameterSpec> specs;
  ModelBuilder build;
};

// `mlp`: flatten, two layers. `cnn`: two times convolution, ReLU and max-pool, then two layers, for samples
// [channels, height, width] of at least 10 x 10. Throws UserError for another name.
SmallModel make_small_model(std::string_view name, const Shape& sample, std::int64_t classes, DType dtype);

}  // namespace plexaura::testing
