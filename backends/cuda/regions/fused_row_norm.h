#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backends/regions/row_norm_regions.h"

namespace plexaura::cuda {

// A region of row_norm_regions.h, with extensions that only the plugin's kernels compute. Forward, the means of the
// rows are one more output, if the region centres.
//   casts_input   the first input has 16 bits, and the region casts it; forward, its cast is one more output
//   casts_result  the first output is cast to 16 bits, which is the last output
// Backward:
//   recentres     the region reads x and its means instead of x - mean, which then need not be stored; the means are
//                 the last input that is read
//   casts_x       x has 16 bits, and the kernel casts it again; only with casts_result, to the same dtype
struct FusedRowNorm {
  RowNormRegion of;
  bool casts_input = false;
  bool casts_result = false;
  bool recentres = false;
  bool casts_x = false;

  std::string kind() const;
  std::size_t x_input() const { return of.backward && of.scales ? 2 : of.backward ? 1 : 0; }
  std::size_t normal_input() const { return x_input() + 3; }  // only with of.scale_grad
  std::vector<std::size_t> inputs_of_elements() const;  // those that have elements for each of the result
  std::size_t inputs_read() const;                      // the other inputs are constants
};

// The operands of a region by their names; V{} for those that it does not have.
template <class V>
struct RowNormValues {
  RowNormValues(const FusedRowNorm& norm, const auto& inputs, const auto& outputs) {
    std::size_t place = 0;
    const auto next = [&](const auto& values, bool exists) { return exists ? values[place++] : V{}; };
    const RowNormRegion& of = norm.of;
    if (of.backward) grad = next(inputs, true);
    if (!of.backward) x = next(inputs, true);
    scale = next(inputs, of.scales);
    shift = next(inputs, of.shifts);
    epsilon = next(inputs, !of.backward);
    if (of.backward) {
      x = next(inputs, true);
      inverse = next(inputs, true);
      root = next(inputs, true);
      normal = next(inputs, of.scale_grad);
      addend = next(inputs, of.adds);
      mean = next(inputs, norm.recentres);
    }
    place = 0;
    result = next(outputs, true);
    if (!of.backward) {
      normal = next(outputs, of.scales);
      centred = next(outputs, of.centres);
      inverse = next(outputs, true);
      root = next(outputs, true);
      mean = next(outputs, of.centres);
      wide_x = next(outputs, norm.casts_input);
    }
    scale_grad = next(outputs, of.scale_grad);
    shift_grad = next(outputs, of.shift_grad);
    narrow_result = next(outputs, norm.casts_result);
  }

  V x, scale, shift, epsilon;
  V grad, addend;
  V mean, inverse, root, centred, normal;
  V result, narrow_result, wide_x;
  V scale_grad, shift_grad;
};

// Returns the region of this kind. Returns nothing for other regions and for single ops.
std::optional<FusedRowNorm> fused_row_norm(const std::string& kind);

// Returns the regions that end at this node, larger ones first.
std::vector<Region> match_fused_row_norm(const Graph& graph, NodeId last, const Uses& uses);

}  // namespace plexaura::cuda
