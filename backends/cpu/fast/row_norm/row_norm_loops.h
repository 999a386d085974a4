#pragma once

#include <cstdint>

namespace plexaura::fast {

// Loops over the rows of layer_norm, group_norm, standardise and rms_norm. Sums over a row are added up in double. The
// formulas, and the places where they round to float, are those of RowNormRegion.

// Element i of row r is multiplied by element (r % groups * extent + i) / run of the scale.
struct NormRows {
  std::int64_t extent;
  std::int64_t run;  // divides the extent
  std::int64_t groups;
  bool centres;

  bool share_sums() const { return run == 1 && groups == 1; }
};

struct NormForward {
  const float* x;
  const float* scale;  // may be null
  const float* shift;  // null, or beside a scale
  float epsilon;
  float* result;
  float* normal;   // receives the result without scale and shift; may be null
  float* centred;  // receives x - mean; may be null
  float* inverse;  // receives 1 / root of each row; may be null
  float* root;     // may be null
};

void normalise_rows(const NormRows& rows, const NormForward& at, std::int64_t begin, std::int64_t end);

struct NormBackward {
  const float* grad;
  const float* scale;  // may be null
  const float* centred;
  const float* inverse;
  const float* root;
  const float* addend;  // may be null
  float* result;        // may be grad, centred or the addend
};

// Receives the gradients of scale and shift by the rows of a call, which are to be added up over all rows; either may be
// null. With runs of one element and one group they are `extent` sums over the rows of the call. Otherwise each row has a
// sum for each of its runs.
struct NormPartialSums {
  float* scale;
  float* shift;
};

void normalise_rows_grad(const NormRows& rows, const NormBackward& at, std::int64_t begin, std::int64_t end,
                         const NormPartialSums& sums);

// Adds up `count` lists of sums: element i of the result is the sum of their elements i. `stride` is the distance of two
// lists.
void add_norm_sums(const float* sums, std::int64_t count, std::int64_t stride, std::int64_t begin,
                   std::int64_t end, float* result);

}  // namespace plexaura::fast
