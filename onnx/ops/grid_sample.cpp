// AffineGrid and GridSample.
// GridSample: x [N, C, D1, D2, ...] at places of a grid [N, P1, P2, ..., K] with one number for each of the K spatial
// axes, the last axis first. Each result is a weighted sum of the elements around its place.

#include <cmath>
#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/indexing.h"
#include "core/ops/logic.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

enum class SampleMode { nearest, linear, cubic };

struct SampleRules {
  SampleMode mode = SampleMode::linear;
  std::string padding = "zeros";
  bool aligns_corners = false;  // -1 and 1 are the centres of the outermost elements, not their outer borders
};

SampleRules rules_of(Call& call) {
  SampleRules rules;
  const bool is_old = call.version() < 20;
  const std::string mode = call.text("mode", is_old ? "bilinear" : "linear");
  if (mode == "nearest")
    rules.mode = SampleMode::nearest;
  else if (mode == (is_old ? "bicubic" : "cubic"))
    rules.mode = SampleMode::cubic;
  else if (mode != (is_old ? "bilinear" : "linear"))
    throw UserError(fmt::format("the mode '{}' is not supported", mode));
  rules.padding = call.text("padding_mode", "zeros");
  if (rules.padding != "zeros" && rules.padding != "border" && rules.padding != "reflection")
    throw UserError(fmt::format("padding_mode must be zeros, border or reflection, not '{}'", rules.padding));
  rules.aligns_corners = call.flag("align_corners", false);
  return rules;
}

// One spatial axis of x, in elements.
struct SampledAxis {
  std::int64_t extent = 1;
  double low = 0;  // places outside of low to high are outside of x
  double high = 0;
};

SampledAxis axis_of(std::int64_t extent, const SampleRules& rules) {
  const auto most = static_cast<double>(extent - 1);
  return rules.aligns_corners ? SampledAxis{extent, 0, most} : SampledAxis{extent, -0.5, most + 0.5};
}

// Reflects places at both borders until they are between them.
Node reflected(const Node& place, const SampledAxis& axis) {
  const double width = axis.high - axis.low;
  if (width == 0) return place * 0.0;
  const Node beyond = abs(place - axis.low);
  const Node turns = floor(beyond / width);
  const Node rest = beyond - turns * width;
  const Node is_even = eq(turns - 2.0 * floor(turns / 2.0), 0.0);
  return where(is_even, rest + axis.low, axis.high - rest);
}

// Moves places outside of x as the padding says. With zeros they stay, and their elements count as 0.
Node padded_place(const Node& place, const SampledAxis& axis, const SampleRules& rules) {
  if (rules.padding == "zeros") return place;
  if (rules.padding == "reflection") return reflected(place, axis);
  const Node is_outside = logical_or(lt(place, axis.low), gt(place, axis.high));
  return where(is_outside, clip(place, 0, static_cast<double>(axis.extent - 1)), place);
}

// One element along an axis for each place: its index in x, and its weight.
struct GridTap {
  Node index;
  Node weight;
};

// The element at `place`, a whole number that may be outside of x.
GridTap tap_at(const Node& place, const Node& weight, const SampledAxis& axis, const SampleRules& rules) {
  const auto most = static_cast<double>(axis.extent - 1);
  const Node inside = rules.padding == "reflection" ? reflected(place, axis) : place;
  // Clips again as integers, because NaN and huge numbers convert to any integer.
  const Node index =
      maximum(minimum(cast(clip(inside, 0, most), DType::int64), axis.extent - 1), std::int64_t{0});
  if (rules.padding != "zeros") return {index, weight};
  return {index, where(logical_or(lt(place, 0.0), gt(place, most)), 0.0, weight)};
}

// The weight by cubic convolution of an element at this distance, which is from 0 to 1 (`is_near`) or from 1 to 2.
Node cubic_weight(const Node& distance, bool is_near) {
  constexpr double a = -0.75;
  if (is_near) return ((a + 2) * distance - (a + 3)) * square(distance) + 1.0;
  return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
}

// Returns the elements around the places along one axis.
std::vector<GridTap> taps_along(const Node& given, const SampledAxis& axis, const SampleRules& rules) {
  const Node nearest = rules.mode == SampleMode::nearest ? round(given) : given;
  const Node place = padded_place(nearest, axis, rules);
  if (rules.mode == SampleMode::nearest)
    return {tap_at(
        place, broadcast_to(place.graph().constant(Tensor::scalar(1.0F).cast(place.dtype())), place.shape()),
        axis, rules)};
  const Node first = floor(place);
  const Node rest = place - first;
  if (rules.mode == SampleMode::linear)
    return {tap_at(first, 1.0 - rest, axis, rules), tap_at(first + 1.0, rest, axis, rules)};
  return {tap_at(first - 1.0, cubic_weight(rest + 1.0, false), axis, rules),
          tap_at(first, cubic_weight(rest, true), axis, rules),
          tap_at(first + 1.0, cubic_weight(1.0 - rest, true), axis, rules),
          tap_at(first + 2.0, cubic_weight(2.0 - rest, false), axis, rules)};
}

void check_grid(const Shape& x, const Shape& grid) {
  const bool fits = x.rank() >= 3 && grid.rank() == x.rank() && grid[0] == x[0] &&
                    grid[grid.rank() - 1] == x.rank() - 2 && x.elements() > 0;
  if (!fits)
    throw UserError(
        fmt::format("a grid {} does not fit x {}; it has the axes N, one for each spatial axis of x, and the "
                    "number of these axes",
                    to_string(grid), to_string(x)));
}

// Adds up the elements of all combinations of taps. x is [N, C, elements], and taps are [N, 1, places].
class GridSum {
 public:
  GridSum(Node x, std::vector<std::vector<GridTap>> taps, std::vector<std::int64_t> extents)
      : x_(std::move(x)), taps_(std::move(taps)), extents_(std::move(extents)) {
    add(0, {});
  }
  const Node& result() const { return sum_; }

 private:
  void add(std::size_t axis, const GridTap& before) {
    if (axis == taps_.size()) {
      const Node term = take_along_axis(x_, before.index, 2) * cast(before.weight, x_.dtype());
      sum_ = sum_.is_empty() ? term : sum_ + term;
      return;
    }
    for (const GridTap& tap : taps_[axis])
      add(axis + 1,
          axis == 0 ? tap : GridTap{before.index * extents_[axis] + tap.index, before.weight * tap.weight});
  }

  Node x_;
  std::vector<std::vector<GridTap>> taps_;  // taps by spatial axis of x
  std::vector<std::int64_t> extents_;
  Node sum_;
};

std::vector<Node> grid_sample(Call& call) {
  const SampleRules rules = rules_of(call);
  const Node x = call[0];
  const Shape shape = x.shape();
  check_grid(shape, call[1].shape());
  const Node grid = cast(call[1], wide_dtype_of(call[1]));
  const std::int64_t axes = shape.rank() - 2;
  const std::int64_t places = grid.shape().elements() / (shape[0] * axes);
  const Node flat_grid = reshape(grid, {shape[0], 1, places, axes});
  std::vector<std::vector<GridTap>> taps;
  std::vector<std::int64_t> extents;
  for (std::int64_t i = 0; i < axes; ++i) {
    const std::int64_t number = axes - 1 - i;
    const Node part =
        reshape(slice(flat_grid, {.axis = 3, .start = number, .stop = number + 1}), {shape[0], 1, places});
    const SampledAxis axis = axis_of(shape[2 + i], rules);
    taps.push_back(taps_along((part + 1.0) * ((axis.high - axis.low) / 2) + axis.low, axis, rules));
    extents.push_back(axis.extent);
  }
  const Node flat = reshape(cast(x, wide_dtype_of(x)), {shape[0], shape[1], -1});
  std::vector<std::int64_t> result{shape[0], shape[1]};
  result.insert(result.end(), grid.shape().begin() + 1, grid.shape().end() - 1);
  return {cast(reshape(GridSum(flat, taps, extents).result(), result), x.dtype())};
}

// Returns the places of an image [D1, D2, ...] that is not moved, from -1 to 1: [elements, K + 1], the last axis first,
// and then a 1.
Tensor unmoved_places(const std::vector<std::int64_t>& extents, bool aligns_corners) {
  const Shape shape(extents);
  std::vector<double> places;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t rest = i;
    for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
      const auto at = static_cast<double>(rest % *extent);
      const auto count = static_cast<double>(*extent);
      const double last = aligns_corners ? count - 1 : count;
      places.push_back(last == 0 ? 0 : (2 * at + (aligns_corners ? 0 : 1)) / last - 1);
      rest /= *extent;
    }
    places.push_back(1);
  }
  const auto axes = static_cast<std::int64_t>(extents.size());
  return Tensor::of({shape.elements(), axes + 1}, places);
}

// Multiplies the coordinates of the elements of an image by matrices [N, K, K + 1]. Returns a grid [N, D1, D2, ..., K].
std::vector<Node> affine_grid(Call& call) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  const Node matrices = call[0];
  std::vector<std::int64_t> result = call.input_integers(1);
  const std::int64_t axes = static_cast<std::int64_t>(result.size()) - 2;
  if (axes < 1 || matrices.shape() != Shape{result[0], axes, axes + 1})
    throw UserError(
        fmt::format("matrices {} do not fit an image with {} axes; they are [N, K, K + 1] for an image [N, "
                    "C, ...] with K further axes",
                    to_string(matrices.shape()), result.size()));
  const std::vector<std::int64_t> extents(result.begin() + 2, result.end());
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents)
    if (extent < 1 || extent > most || (elements *= extent) > most)
      throw UserError(fmt::format("an image with an extent {} is impossible; it has from 1 to {} elements",
                                  extent, most));
  const DType dtype = wide_dtype_of(matrices);
  const Tensor places = unmoved_places(extents, call.flag("align_corners", false)).cast(dtype);
  const Node grid = matmul(call.graph().constant(places), cast(matrices, dtype), {.transpose_b = true});
  result.erase(result.begin() + 1);
  result.push_back(axes);
  return {cast(reshape(grid, result), matrices.dtype())};
}

constexpr Row rows_of_grids[] = {{"AffineGrid", 20, affine_grid}, {"GridSample", 16, grid_sample}};

}  // namespace

std::span<const Row> grid_rows() { return rows_of_grids; }

}  // namespace plexaura::onnx
