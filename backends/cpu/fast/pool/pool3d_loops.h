#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/pool_axis.h"

namespace plexaura::fast {

// The longest row of an image that the loops below take: they keep the sum or the extreme of each column on the stack.
constexpr std::int64_t longest_pool_row = 1024;

// The windows of a pool along one axis, by place in the output; and by position in the image the places of the windows
// that contain it.
struct PoolRanges {
  std::vector<std::int32_t> begin, end;
  std::vector<double> share;  // 1 / this axis' factor of the number by which a mean is divided
  std::vector<std::int32_t> first_viewer, last_viewer;

  PoolRanges(const PoolAxis& axis, bool count_include_pad);
  std::int64_t outputs() const { return static_cast<std::int64_t>(begin.size()); }
  std::int64_t inputs() const { return static_cast<std::int64_t>(first_viewer.size()); }
};

struct PoolRanges3d {
  PoolRanges d, h, w;

  std::int64_t places() const { return d.outputs() * h.outputs() * w.outputs(); }
  std::int64_t voxels() const { return d.inputs() * h.inputs() * w.inputs(); }
};

// Each call computes one image [D, H, W] of a row-major value. T is float or double. Only max_grad() adds up in T, the
// others in double.
template <class T>
struct Pool3dLoops {
  void (*average)(const PoolRanges3d& ranges, const T* x, T* y);
  void (*average_grad)(const PoolRanges3d& ranges, const T* grad, T* result);
  // index[i] becomes the position of output i's first largest element, or of its first NaN, counted within the image.
  // Either result may be null.
  void (*max)(const PoolRanges3d& ranges, const T* x, T* y, std::int64_t* index);
  void (*max_grad)(const PoolRanges3d& ranges, const T* grad, const std::int64_t* index, T* result);
};

template <class T>
Pool3dLoops<T> pool3d_loops();

}  // namespace plexaura::fast
