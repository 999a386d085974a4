#pragma once

#include <string_view>
#include <vector>

#include "core/exchange/strategy.h"

// Memory that lies like the value arena, from its beginning on, as a part of a strategy's state: one tensor for each
// parameter that it holds, in logical layout, so that a run with another layout can take it back.
namespace plexaura {

// A tensor is named by the prefix and its parameter.
void keep_arena(const Placement& placement, const Tensor& memory, std::string_view prefix, bool of_rank,
                std::vector<StrategyState>& state);
// The same back, where the part is one of these.
void take_arena(const Placement& placement, Tensor& memory, std::string_view prefix,
                const StrategyState& part);

}  // namespace plexaura
