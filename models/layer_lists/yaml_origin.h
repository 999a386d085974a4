#pragma once

#include "core/graph/origin.h"
#include "models/config/yaml_tree.h"

namespace plexaura {

// Returns a place in a YAML file as the origin of nodes. Its scope is empty, so nodes get the path of the
// modules around them.
Origin yaml_origin(const YamlPosition& position);

}  // namespace plexaura
