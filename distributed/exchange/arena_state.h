#pragma once

#include <string_view>
#include <vector>

#include "core/exchange/strategy.h"

// Memory that lies like the value arena, or like the beginning of it, as part of a strategy's state. It is
// kept as one row-major tensor for each parameter, so that a run with another layout can restore it.
namespace plexaura {

// The name of a tensor is the prefix followed by the name of its parameter. `of_rank`: see StrategyState.
void keep_arena(const Placement& placement, const Tensor& memory, std::string_view prefix, bool of_rank,
                std::vector<StrategyState>& state);
// Restores `part` if its name has the prefix and it fits a parameter; otherwise does nothing.
void take_arena(const Placement& placement, Tensor& memory, std::string_view prefix,
                const StrategyState& part);

}  // namespace plexaura
