#pragma once

#include "core/graph/origin.h"
#include "models/config/yaml_tree.h"

namespace plexaura {

// A place in a YAML file as the origin of nodes; their scope is that of the modules around them.
Origin yaml_origin(const YamlPosition& position);

}  // namespace plexaura
