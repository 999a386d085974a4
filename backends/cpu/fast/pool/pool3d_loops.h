#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/pool_axis.h"

namespace plexaura::fast {

// The longest row of an image that the loops below take: they keep the sums of its columns on the stack.
constexpr std::int64_t longest_pool_row = 1024;

// The windows of a pool along one axis, by place in the output; and by position in the image the places of the windows
// that contain it.
struct PoolRanges {
  std::vector<std::int32_t> begin, end;
  std::vector<double> share;  // 1 / the number by which a mean is divided
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

// Each call computes one image [D, H, W] of a row-major value. Sums are added up in double.
void avg_pool_image(const PoolRanges3d& ranges, const float* x, float* y);
void avg_pool_image_grad(const PoolRanges3d& ranges, const float* grad, float* result);
// index[i] becomes the position of output i's first largest element, or of its first NaN, counted within the image.
// `index` may be null.
void max_pool_image(const PoolRanges3d& ranges, const float* x, float* y, std::int64_t* index);
void max_pool_image_grad(const PoolRanges3d& ranges, const float* grad, const std::int64_t* index,
                         float* result);

}  // namespace plexaura::fast
