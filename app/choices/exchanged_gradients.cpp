#include "app/choices/exchanged_gradients.h"

#include <ranges>

namespace plexaura {

Placement exchanged_gradients(const std::vector<ParameterSpec>& parameters, const ArenaTypes& types) {
  Placement placement{types, {}};
  for (const ParameterSpec& spec : std::views::reverse(parameters))
    if (spec.role == ParameterRole::trainable)
      placement.append(spec.name, spec.type, spec.role, Layout::row_major(spec.type.shape.rank()));
  return placement;
}

}  // namespace plexaura
