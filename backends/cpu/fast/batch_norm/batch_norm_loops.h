#pragma once

#include <cstdint>

namespace plexaura::fast {

// Loops of batch normalisation over the rows of one sample and one block of channels, for 8 and for 16 lanes.

constexpr int most_lanes = 16;

// The numbers of each lane in y = (x - mean) * factor + shift.
struct NormaliseBy {
  float mean[most_lanes];
  float factor[most_lanes];
  float shift[most_lanes];
};

struct NormaliseArrays {
  const float* src;
  const float* addend;  // null: nothing is added
  float* dst;
  bool relu;
  bool stream;  // write past the caches
};

// The numbers of each lane in diff_src = factor * (grad - mean_grad - (x - mean) * tilt), plus the addend.
struct BackwardBy {
  float mean[most_lanes];
  float factor[most_lanes];
  float mean_grad[most_lanes];
  float tilt[most_lanes];
};

struct BackwardArrays {
  const float* src;
  const float* diff_dst;
  const float* mask;    // the gradient counts only where this is above 0; null: everywhere
  const float* addend;  // null: nothing is added
  float* masked;        // receives the masked gradient; may be null, or diff_dst itself
  float* diff_src;      // may be diff_dst itself
};

struct Rows {
  std::int64_t count;
  std::int64_t stride;
};

// Computes for each lane the mean of the rows, and their spread: the sum of squared distances from the mean.
void find_moments(std::int64_t lanes, const float* src, Rows rows, double* mean, double* spread);
void normalise(std::int64_t lanes, const NormaliseArrays& arrays, Rows rows, const NormaliseBy& by);
// Computes for each lane the sum of the masked gradient, and the sum of its product with x - mean. Also writes the
// masked gradient if neither `arrays.mask` nor `arrays.masked` is null.
void sum_gradients(std::int64_t lanes, const BackwardArrays& arrays, Rows rows, const float* mean,
                   double* sum, double* along);
void backward(std::int64_t lanes, const BackwardArrays& arrays, Rows rows, const BackwardBy& by);

}  // namespace plexaura::fast
