#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/params/module.h"

namespace plexaura {

// A layer that dev/compare_layers compares, with the function that calls it.
struct LayerCase {
  std::string name;
  std::shared_ptr<Module> module;
  std::function<Node(const std::vector<Node>& inputs)> call;
  Mode mode = Mode::inference;
};

std::vector<LayerCase> layer_cases();

}  // namespace plexaura
