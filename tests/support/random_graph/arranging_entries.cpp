// Kinds of nodes that move, repeat, cut and select elements.

#include "core/ops/arrange.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/cummax.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/ordering.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/subscript.h"
#include "core/ops/unary.h"
#include "core/ops/unfold.h"
#include "tests/support/random_graph/sketch.h"

namespace plexaura::testing {

namespace {

std::int64_t extent_of(const Node& node, std::int64_t axis) {
  return node.shape()[normalise_axis(axis, node.shape().rank())];
}

// The shape of a node with another extent of an axis.
Shape with_extent(const Node& node, std::int64_t axis, std::int64_t extent) {
  std::vector<std::int64_t> extents = node.shape().extents();
  extents[static_cast<std::size_t>(normalise_axis(axis, node.shape().rank()))] = extent;
  return Shape(extents);
}

void add_reshape(Sketch& sketch) {
  const Node a = sketch.any();
  const std::vector<std::int64_t> extents = sketch.extents_of(a);
  PLEXAURA_SKETCH(reshape(a, extents), a, extents);
}

void add_flatten(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  PLEXAURA_SKETCH(flatten(a), a);
}

void add_broadcast(Sketch& sketch) {
  const Node a = sketch.of_rank(0, 3);
  std::vector<std::int64_t> extents = a.shape().extents();
  for (std::int64_t& extent : extents)
    if (extent == 1) extent = sketch.from(1, 3);
  extents.insert(extents.begin(), sketch.from(1, 3));
  const Shape shape(extents);
  PLEXAURA_SKETCH(broadcast_to(a, shape), a, shape);
}

void add_permute(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 5);
  const std::vector<std::int64_t> axes = sketch.order_of(a);
  PLEXAURA_SKETCH(permute(a, axes), a, axes);
}

void add_transpose(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 5);
  const std::int64_t first = sketch.axis_of(a);
  const std::int64_t second = sketch.axis_of(a);
  PLEXAURA_SKETCH(transpose(a, first, second), a, first, second);
}

void add_squeeze(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  PLEXAURA_SKETCH(squeeze(a), a);
}

void add_unsqueeze(Sketch& sketch) {
  const Node a = sketch.of_rank(0, 3);
  const std::int64_t axis = sketch.from(0, a.shape().rank());
  PLEXAURA_SKETCH(unsqueeze(a, axis), a, axis);
}

void add_stack(Sketch& sketch) {
  const Node a = sketch.of_rank(0, 3);
  const Node b = sketch.like(a.shape());
  const std::int64_t axis = sketch.from(0, a.shape().rank());
  PLEXAURA_SKETCH(stack({a, b, a}, axis), a, b, axis);
}

void add_concat(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis = sketch.axis_of(a);
  const Node b = sketch.like(with_extent(a, axis, sketch.from(0, 3)));
  PLEXAURA_SKETCH(concat({a, b}, axis), a, b, axis);
}

void add_split(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis = sketch.axis_of(a);
  const std::int64_t size = sketch.from(1, 3);
  PLEXAURA_SKETCH(split(a, size, axis).back(), a, size, axis);
  PLEXAURA_SKETCH(chunk(a, size, axis).front(), a, size, axis);
}

void add_tile(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 3);
  std::vector<std::int64_t> repeats;
  for (std::int64_t i = a.shape().rank(); i > 0; --i) repeats.push_back(sketch.from(1, 2));
  PLEXAURA_SKETCH(tile(a, repeats), a, repeats);
}

void add_expand(Sketch& sketch) {
  const Node b = sketch.any();
  const Node a = sketch.beside(b.shape());
  PLEXAURA_SKETCH(expand_as(a, b) - b, a, b);
}

void add_flip(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::vector<std::int64_t> axes = sketch.axes_of(a);
  PLEXAURA_SKETCH(flip(a, axes), a, axes);
}

void add_roll(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::vector<std::int64_t> axes{sketch.axis_of(a)};
  const std::vector<std::int64_t> shifts{sketch.from(-4, 4)};
  PLEXAURA_SKETCH(roll(a, shifts, axes), a, shifts, axes);
}

void add_pad(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis_ = sketch.axis_of(a);
  const std::int64_t first = sketch.from(0, 2);
  const std::int64_t last = sketch.from(0, 2);
  PLEXAURA_SKETCH(pad(a, {{axis_, first, last}}, {.value = 0.3}), a, axis_, first, last);
  PLEXAURA_SKETCH(pad(a, {{axis_, first, last}}, {.mode = PadMode::replicate}), a, axis_, first, last);
}

void add_mirrored(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis_ = sketch.axis_of(a);
  const std::int64_t most = std::min<std::int64_t>(2, extent_of(a, axis_) - 1);
  const std::int64_t first = sketch.from(0, most);
  const std::int64_t last = sketch.from(0, most);
  PLEXAURA_SKETCH(pad(a, {{axis_, first, last}}, {.mode = PadMode::reflect}), a, axis_, first, last);
  PLEXAURA_SKETCH(pad(a, {{axis_, first, last}}, {.mode = PadMode::circular}), a, axis_, first, last);
}

void add_triangles(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 4);
  const std::int64_t diagonal_ = sketch.from(-1, 1);
  PLEXAURA_SKETCH(triu(a, diagonal_), a, diagonal_);
  PLEXAURA_SKETCH(tril(a, diagonal_), a, diagonal_);
}

void add_diagonal(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 4);
  const std::int64_t offset = sketch.from(-1, 1);
  PLEXAURA_SKETCH(diagonal(a, offset), a, offset);
}

void add_slice(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t along = sketch.axis_of(a);
  const std::int64_t extent = extent_of(a, along);
  const std::int64_t first = sketch.from(0, extent - 1);
  const std::int64_t last = sketch.from(first, extent);
  const std::int64_t stride = sketch.from(1, 3);
  PLEXAURA_SKETCH(slice(a, {.axis = along, .start = first, .stop = last, .step = stride}), a, along, first,
                  last, stride);
  PLEXAURA_SKETCH(slice(a, {.axis = along, .start = first, .step = -stride}), a, along, first, stride);
}

void add_subscript(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 4);
  const std::int64_t first = sketch.from(-a.shape()[0], a.shape()[0] - 1);
  const std::int64_t last = sketch.from(0, a.shape()[1]);
  PLEXAURA_SKETCH(a[first], a, first);
  PLEXAURA_SKETCH((a[{slice(0, 2), slice(0, last)}]), a, last);
}

void add_gather(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 3);
  const std::int64_t along = sketch.axis_of(a);
  const Node i = sketch.integers(sketch.shape(sketch.from(0, 2)), 0, extent_of(a, along));
  PLEXAURA_SKETCH(gather(a, i, {.axis = along}), a, i, along);
}

void add_index_select(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis = sketch.axis_of(a);
  const Node i = sketch.integers({sketch.from(1, 5)}, 0, extent_of(a, axis));
  PLEXAURA_SKETCH(index_select(a, axis, i), a, axis, i);
}

void add_embedding(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 2);
  const std::int64_t padding = sketch.from(0, a.shape()[0] - 1);
  const Node i = sketch.integers({sketch.from(1, 3), sketch.from(1, 3)}, 0, a.shape()[0]);
  PLEXAURA_SKETCH(embedding(a, i), a, i);
  PLEXAURA_SKETCH(stop_gradient(embedding(a, i, padding)) * 0.0 + embedding(a, i), a, i, padding);
}

void add_along_axis(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis = sketch.axis_of(a);
  const std::int64_t extent = extent_of(a, axis);
  const Node i = sketch.integers(with_extent(a, axis, sketch.from(1, 3)), 0, extent);
  PLEXAURA_SKETCH(take_along_axis(a, i, axis), a, i, axis);
  const Node b = sketch.like(i.shape());
  PLEXAURA_SKETCH(scatter(a, i, b, axis), a, i, b, axis);
  PLEXAURA_SKETCH(scatter_add(a, i, b, axis), a, i, b, axis);
}

void add_unfold(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 3);
  const std::int64_t along = sketch.axis_of(a);
  const std::int64_t extent = extent_of(a, along);
  const std::int64_t width = sketch.from(1, std::min<std::int64_t>(3, extent));
  const std::int64_t stride = sketch.from(1, 2);
  PLEXAURA_SKETCH(unfold(a, {.axis = along, .size = width, .step = stride}), a, along, width, stride);
  PLEXAURA_SKETCH(fold(tanh(unfold(a, {.axis = along, .size = width, .step = stride})), extent,
                       {.axis = along, .size = width, .step = stride}),
                  a, along, width, stride, extent);
}

void add_columns(Sketch& sketch) {
  const Node a = sketch.leaf({sketch.from(1, 2), sketch.from(1, 3), sketch.from(2, 5), sketch.from(2, 5)});
  const std::int64_t stride = sketch.from(1, 2);
  PLEXAURA_SKETCH(im2col(a, {.kernel = 2, .stride = stride, .padding = 1}), a, stride);
  const std::int64_t h = a.shape()[2];
  const std::int64_t w = a.shape()[3];
  PLEXAURA_SKETCH(col2im(tanh(im2col(a, {.kernel = 2, .stride = stride, .padding = 1})), Size2d(h, w),
                         {.kernel = 2, .stride = stride, .padding = 1}),
                  a, stride, h, w);
}

void add_sort(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis = sketch.axis_of(a);
  const std::int64_t count = sketch.from(1, extent_of(a, axis));
  PLEXAURA_SKETCH(sort(a, axis).values, a, axis);
  PLEXAURA_SKETCH(topk(a, count, axis).values, a, count, axis);
  PLEXAURA_SKETCH(kthvalue(a, count, axis, true).values - a, a, count, axis);
}

void add_argsort(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis = sketch.axis_of(a);
  const Node b = sketch.leaf(a.shape());
  const bool down = sketch.coin();
  PLEXAURA_SKETCH(take_along_axis(a, argsort(b, axis, down), axis), a, b, axis, down);
  PLEXAURA_SKETCH(take_along_axis(a, argcummin(b, axis), axis), a, b, axis);
}

void add_quantiles(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t along = sketch.axis_of(a);
  PLEXAURA_SKETCH(median(a, along).values, a, along);
  PLEXAURA_SKETCH(quantile(a, 0.37, {.axis = along}), a, along);
  PLEXAURA_SKETCH(quantile(a, 0.8), a);
}

void add_cumulative_extremes(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis = sketch.axis_of(a);
  PLEXAURA_SKETCH(cummax(a, axis).values, a, axis);
  PLEXAURA_SKETCH(cummin(a, axis).values, a, axis);
}

void add_searchsorted(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 1);
  const Node b = sketch.leaf({sketch.from(1, 4)});
  const Node i = sketch.leaf(a.shape());
  PLEXAURA_SKETCH(a + cast(searchsorted(sort(b).values, i), a.dtype()) * 0.3, a, b, i);
}

}  // namespace

std::vector<SketchEntry> arranging_entries() {
  return {{add_reshape},     {add_reshape},
          {add_flatten},     {add_broadcast},
          {add_permute},     {add_permute},
          {add_transpose},   {add_squeeze},
          {add_unsqueeze},   {add_stack},
          {add_concat},      {add_concat},
          {add_split},       {add_tile},
          {add_expand},      {add_flip},
          {add_roll},        {add_pad},
          {add_mirrored},    {add_triangles},
          {add_diagonal},    {add_slice},
          {add_slice},       {add_subscript},
          {add_gather},      {add_index_select},
          {add_embedding},   {add_along_axis},
          {add_unfold},      {add_columns},
          {add_sort},        {add_argsort},
          {add_quantiles},   {add_cumulative_extremes},
          {add_searchsorted}};
}

}  // namespace plexaura::testing
