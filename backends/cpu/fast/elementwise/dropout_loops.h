#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// Keeps an element if its random bits are not below `dropped_below`, and multiplies it by `scale`. `y` and
// `mask` may be null.
struct DropoutRule {
  std::uint32_t dropped_below;
  float scale;
};

// Returns the rule for elements that are dropped with the probability p.
inline DropoutRule rule_of(double p) {
  return {static_cast<std::uint32_t>(p * 4294967296.0), static_cast<float>(1 / (1 - p))};
}

PLEXAURA_CLONED void drop(const DropoutRule& rule, const std::uint32_t* words, std::int64_t count,
                          const float* x, float* y, bool* mask);

PLEXAURA_CLONED void drop_grad(const float* diff_y, const bool* mask, float scale, std::int64_t count,
                               float* diff_x);

}  // namespace plexaura::fast
