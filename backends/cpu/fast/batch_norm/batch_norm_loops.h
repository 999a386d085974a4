#pragma once

#include <cstdint>

namespace plexaura::fast {

// The loops of batch normalisation over the rows of one sample and one block of channels. They exist for 8
// and 16 lanes.

constexpr int most_lanes = 16;

// Per lane: y = (x - mean) * factor + shift.
struct NormaliseBy {
  float mean[most_lanes];
  float factor[most_lanes];
  float shift[most_lanes];
};

struct NormaliseArrays {
  const float* src;
  const float* addend;  // null for none
  float* dst;
  bool relu;
  bool stream;  // write past the caches
};

// Per lane: diff_src = factor * (grad - mean_grad - (x - mean) * tilt), plus the addend.
struct BackwardBy {
  float mean[most_lanes];
  float factor[most_lanes];
  float mean_grad[most_lanes];
  float tilt[most_lanes];
};

struct BackwardArrays {
  const float* src;
  const float* diff_dst;
  const float* mask;    // the gradient counts where this is above 0; null for everywhere
  const float* addend;  // null for none
  float* masked;        // where the masked gradient is wanted; may be null, or diff_dst itself
  float* diff_src;      // may be diff_dst itself
};

struct Rows {
  std::int64_t count;
  std::int64_t stride;
};

// Per lane the mean of the rows, and their spread: the sum of the squares of their distances to it.
void find_moments(std::int64_t lanes, const float* src, Rows rows, double* mean, double* spread);
void normalise(std::int64_t lanes, const NormaliseArrays& arrays, Rows rows, const NormaliseBy& by);
// Sums per lane of the masked gradient and of its product with x - mean; writes the masked gradient where it
// is wanted.
void sum_gradients(std::int64_t lanes, const BackwardArrays& arrays, Rows rows, const float* mean,
                   double* sum, double* along);
void backward(std::int64_t lanes, const BackwardArrays& arrays, Rows rows, const BackwardBy& by);

}  // namespace plexaura::fast
