#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device/backend.h"

// Regions of the ops from which layer_norm, group_norm, instance_norm, standardise and rms_norm are composed. Each
// normalises rows: the elements over which a mean is taken.

namespace plexaura {

// Describes a region of row_norm_regions.h. Forward:
//   inputs: x; scale and shift, if any; epsilon; constants that kernels need not read
//   outputs: the result; the normalised x, if it is not the result; x - mean, if the region centres; and for each row
//     1 / root and root, where root = sqrt(variance + epsilon)
// Backward:
//   inputs: the gradient of the result; the scale, if any; x - mean, or x if the region does not centre; 1 / root;
//     root; the normalised x, if the scale has a gradient: (x - mean) / root; an addend, if any; constants
//   outputs: the gradient of x, plus the addend; the gradients of scale and shift, if any
// The ops round to x's dtype in these places, and kernels have to do so too:
//   slope = -(sum(c g) / root * inverse) / (2 * root) / extent, where g is the gradient times the scale
//   t = g * inverse + slope * (2 * c)
//   gradient of x = t - mean(t), or t if the region does not centre
struct RowNormRegion {
  bool centres = false;
  bool backward = false;
  bool scales = false;
  bool shifts = false;      // forward: true if a shift is added
  bool scale_grad = false;  // backward: true if the region computes the gradient of the scale
  bool shift_grad = false;  // backward: true if the region computes the gradient of the shift
  bool adds = false;        // backward: true if the region adds an addend

  // Returns the name of the kind, such as "row_norm+scale+shift" or "rms_norm_grad+scale".
  std::string kind() const;
};

// Returns the region of this kind. Returns nothing for the kinds of other regions.
std::optional<RowNormRegion> row_norm_region(const std::string& kind);

// The sizes of the loops over a region. Element i of row r is multiplied by element (r % groups * extent + i)
// / run of the scale.
struct RowNormShape {
  std::int64_t rows = 1;
  std::int64_t extent = 1;
  std::int64_t run = 1;     // number of neighbours that share an element of the scale; divides `extent`
  std::int64_t groups = 1;  // number of rows after which the elements of the scale repeat; divides `rows`

  std::int64_t channels() const { return groups * extent / run; }
};

// `result` is the type of the result, `roots` that of the roots, and `scale` that of the scale, if any. Returns nothing
// if the elements of the scale belong to other places.
std::optional<RowNormShape> row_norm_shape(const TensorType& result, const TensorType& roots,
                                           const TensorType* scale);

// Returns the regions that end at this node, larger ones first.
std::vector<Region> match_row_norm(const Graph& graph, NodeId last, const Uses& uses);

}  // namespace plexaura
