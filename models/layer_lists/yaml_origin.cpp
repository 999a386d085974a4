#include "models/layer_lists/yaml_origin.h"

namespace plexaura {

Origin yaml_origin(const YamlPosition& position) {
  return {position.file,
          static_cast<std::uint32_t>(position.line),
          static_cast<std::uint32_t>(position.column),
          {},
          false};
}

}  // namespace plexaura
