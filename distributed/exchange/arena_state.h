#pragma once

#include <string_view>
#include <vector>

#include "core/exchange/strategy.h"

// Memory with the layout of the value arena, or of the beginning of it, as part of a strategy's state. It is
// kept as one row-major tensor for each parameter, so that a run with another layout can restore it.
namespace plexaura {

// Adds the memory to a strategy's state. The name of a tensor is the prefix followed by the name of its
// parameter. For `of_rank` see StrategyState.
void keep_arena(const Placement& placement, const Tensor& memory, std::string_view prefix, bool of_rank,
                std::vector<StrategyState>& state);
// Copies `part` to the memory if its name has the prefix and if it fits a parameter. Otherwise does nothing.
void take_arena(const Placement& placement, Tensor& memory, std::string_view prefix,
                const StrategyState& part);

}  // namespace plexaura
