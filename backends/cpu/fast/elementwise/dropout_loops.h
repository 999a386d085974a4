#pragma once

#include <cstdint>

namespace plexaura::fast {

// An element is kept where its bits are not below a limit; `y` and `mask` may be null.
struct DropoutRule {
  std::uint32_t dropped_below;
  float scale;
};
void drop(const DropoutRule& rule, const std::uint32_t* words, std::int64_t count, const float* x, float* y,
          bool* mask);

void drop_grad(const float* diff_y, const bool* mask, float scale, std::int64_t count, float* diff_x);

}  // namespace plexaura::fast
