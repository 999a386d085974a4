#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// Loops over the rows of layer_norm, group_norm, standardise and rms_norm, for T = float and double. Sums over a row are
// added up in double. The formulas, and the places where they round to T, are those of RowNormRegion.

// Element i of row r is multiplied by element (r % groups * extent + i) / run of the scale.
struct NormRows {
  std::int64_t extent;
  std::int64_t run;  // divides the extent
  std::int64_t groups;
  bool centres;

  bool share_sums() const { return run == 1 && groups == 1; }
};

template <class T>
struct NormForward {
  const T* x;
  const T* scale;  // may be null
  const T* shift;  // may be null; is null if there is no scale
  T epsilon;
  T* result;
  T* normal;   // receives the result without scale and shift; may be null
  T* centred;  // receives x - mean; may be null
  T* inverse;  // receives 1 / root of each row; may be null
  T* root;     // may be null
};

PLEXAURA_CLONED void normalise_rows(const NormRows& rows, const NormForward<float>& at, std::int64_t begin,
                                    std::int64_t end);
PLEXAURA_CLONED void normalise_rows(const NormRows& rows, const NormForward<double>& at, std::int64_t begin,
                                    std::int64_t end);

template <class T>
struct NormBackward {
  const T* grad;
  const T* scale;  // may be null
  const T* centred;
  const T* inverse;
  const T* root;
  const T* addend;  // may be null
  T* result;        // may be grad, centred or the addend
};

// The memory to which normalise_rows_grad() writes sums of the gradients of scale and shift. Each pointer may be null. If
// NormRows::share_sums(), an array gets `extent` sums over the rows of the call. Otherwise it gets extent / run sums for each
// row. The caller adds up the arrays of all calls with add_norm_sums().
template <class T>
struct NormPartialSums {
  T* scale;
  T* shift;
};

PLEXAURA_CLONED void normalise_rows_grad(const NormRows& rows, const NormBackward<float>& at,
                                         std::int64_t begin, std::int64_t end,
                                         const NormPartialSums<float>& sums);
PLEXAURA_CLONED void normalise_rows_grad(const NormRows& rows, const NormBackward<double>& at,
                                         std::int64_t begin, std::int64_t end,
                                         const NormPartialSums<double>& sums);

// Adds up `count` lists of sums: element i of the result is the sum of their elements i. `stride` is the distance of two
// lists.
PLEXAURA_CLONED void add_norm_sums(const float* sums, std::int64_t count, std::int64_t stride,
                                   std::int64_t begin, std::int64_t end, float* result);
PLEXAURA_CLONED void add_norm_sums(const double* sums, std::int64_t count, std::int64_t stride,
                                   std::int64_t begin, std::int64_t end, double* result);

}  // namespace plexaura::fast
