#pragma once

#include <cstdint>

#include "core/ops/philox.h"

namespace plexaura::fast {

// Draws that are made together.
constexpr std::int64_t draws_at_once = 64;

// words[i] = the random bits of index 4 * block + i, for draws_at_once of them.
void draw(const philox::Draws& draws, std::int64_t block, std::uint32_t* words);

// An element is kept where its bits are not below a limit; `y` and `mask` may be null.
struct DropoutRule {
  std::uint32_t dropped_below;
  float scale;
};
void drop(const DropoutRule& rule, const std::uint32_t* words, std::int64_t count, const float* x, float* y,
          bool* mask);

void drop_grad(const float* diff_y, const bool* mask, float scale, std::int64_t count, float* diff_x);

}  // namespace plexaura::fast
