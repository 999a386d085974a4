// Ops that read or write elements at places that are given by indices, and ops that find such places.

#include <fmt/format.h>
#include <numeric>

#include "onnx/ops/matrices.h"
#include "onnx/ops/table.h"

#include "core/ops/arrange.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/cumsum.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/ordering.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

using Integers = std::vector<std::int64_t>;

// The standard's indices may count from the end of the axis.
Node from_the_front(const Node& indices, std::int64_t extent) {
  const Node wide = cast(indices, DType::int64);
  return where(lt(wide, 0), wide + extent, wide);
}

std::vector<Node> gather_rows(Call& call) {
  const std::int64_t axis = normalise_axis(call.integer("axis", 0), call[0].shape().rank());
  return {gather(call[0], from_the_front(call[1], call[0].shape()[axis]), {.axis = axis})};
}

// Checks indices of elements along an axis: they have as many axes as x, and no other axis is longer than in x.
void check_elementwise_indices(const Shape& x, const Shape& indices, std::int64_t axis) {
  bool fits = indices.rank() == x.rank();
  for (std::int64_t i = 0; fits && i < x.rank(); ++i) fits = i == axis || indices[i] <= x[i];
  if (!fits)
    throw UserError(
        fmt::format("indices {} along axis {} do not fit {}", to_string(indices), axis, to_string(x)));
}

// Cuts x to `shape` along all axes except `but`: the elements beyond the extents of the indices are not read.
Node cut_like(const Node& x, const Shape& shape, std::int64_t but) {
  Node result = x;
  for (std::int64_t i = 0; i < shape.rank(); ++i)
    if (i != but && shape[i] != x.shape()[i])
      result = slice(result, {.axis = i, .start = 0, .stop = shape[i]});
  return result;
}

std::vector<Node> gather_elements(Call& call) {
  const std::int64_t axis = normalise_axis(call.integer("axis", 0), call[0].shape().rank());
  const Node indices = from_the_front(call[1], call[0].shape()[axis]);
  check_elementwise_indices(call[0].shape(), indices.shape(), axis);
  return {take_along_axis(cut_like(call[0], indices.shape(), axis), indices, axis)};
}

std::vector<Node> scatter_elements(Call& call) {
  const std::int64_t axis = normalise_axis(call.integer("axis", 0), call[0].shape().rank());
  const std::string reduction = call.text("reduction", "none");
  const Node indices = from_the_front(call[1], call[0].shape()[axis]);
  check_elementwise_indices(call[0].shape(), indices.shape(), axis);
  if (call[2].shape() != indices.shape())
    throw UserError(fmt::format("updates {} must have the shape of the indices, {}",
                                to_string(call[2].shape()), to_string(indices.shape())));
  for (std::int64_t i = 0; i < indices.shape().rank(); ++i)
    if (i != axis && indices.shape()[i] != call[0].shape()[i])
      throw UserError("indices that are shorter than x along another axis are not supported");
  if (reduction == "none") return {scatter(call[0], indices, call[2], axis)};
  if (reduction == "add") return {scatter_add(call[0], indices, call[2], axis)};
  throw UserError(fmt::format("the reduction '{}' is not supported; there are none and add", reduction));
}

// Places in x [batch, rest...] as numbers of rows: the indices [batch..., M, K] select the first K axes of x after
// the `batch` axes.
struct Places {
  Node rows;                       // [batch, ..., M], from 0 to `count` - 1
  std::int64_t count = 1;          // the product of the first axes of x
  std::vector<std::int64_t> rest;  // extents of the other axes of x
};

Places places_of(const Node& x, const Node& indices, std::int64_t batch) {
  const Shape& shape = x.shape();
  const std::int64_t last = indices.shape().rank() - 1;
  const std::int64_t chosen = last < 0 ? 0 : indices.shape()[last];
  bool fits = batch >= 0 && batch <= last && chosen >= 1 && chosen <= shape.rank() - batch;
  for (std::int64_t i = 0; fits && i < batch; ++i) fits = indices.shape()[i] == shape[i];
  if (!fits)
    throw UserError(fmt::format("indices {} with {} batch axes do not fit {}", to_string(indices.shape()),
                                batch, to_string(shape)));
  Graph& graph = x.graph();
  std::vector<std::int64_t> places(indices.shape().begin(), indices.shape().end() - 1);
  Places result;
  result.rows = broadcast_to(graph.constant(Tensor::scalar(std::int64_t{0})), Shape(places));
  for (std::int64_t i = 0; i < batch; ++i) {
    std::vector<std::int64_t> along(places.size(), 1);
    along[static_cast<std::size_t>(i)] = shape[i];
    result.rows = result.rows * shape[i] + reshape(counted(graph, shape[i]), along);
  }
  for (std::int64_t k = 0; k < chosen; ++k) {
    const std::int64_t extent = shape[batch + k];
    const Node part = slice(indices, {.axis = last, .start = k, .stop = k + 1});
    result.rows = result.rows * extent + from_the_front(reshape(part, places), extent);
  }
  for (std::int64_t i = 0; i < batch + chosen; ++i) result.count *= shape[i];
  result.rest.assign(shape.begin() + batch + chosen, shape.end());
  return result;
}

std::vector<std::int64_t> with_front(std::int64_t front, const std::vector<std::int64_t>& rest) {
  std::vector<std::int64_t> extents{front};
  extents.insert(extents.end(), rest.begin(), rest.end());
  return extents;
}

std::vector<Node> gather_nd(Call& call) {
  const Places places = places_of(call[0], call[1], call.integer("batch_dims", 0));
  return {gather(reshape(call[0], with_front(places.count, places.rest)), places.rows)};
}

std::vector<Node> scatter_nd(Call& call) {
  const std::string reduction = call.text("reduction", "none");
  if (reduction != "none" && reduction != "add")
    throw UserError(fmt::format("the reduction '{}' is not supported; there are none and add", reduction));
  const Node x = call[0];
  const Places places = places_of(x, call[1], 0);
  const std::int64_t width = Shape(places.rest).elements();
  const std::int64_t updated = places.rows.shape().elements();
  Integers expected(call[1].shape().begin(), call[1].shape().end() - 1);
  expected.insert(expected.end(), places.rest.begin(), places.rest.end());
  if (call[2].shape() != Shape(expected))
    throw UserError(fmt::format("updates {} must have the shape {}", to_string(call[2].shape()),
                                to_string(Shape(expected))));
  const Node rows = reshape(x, {places.count, width});
  const Node updates = reshape(call[2], {updated, width});
  const Node at = broadcast_to(reshape(places.rows, {updated, 1}), Shape{updated, width});
  const Node result = reduction == "add" ? scatter_add(rows, at, updates, 0) : scatter(rows, at, updates, 0);
  return {reshape(result, x.shape().extents())};
}

// 0, 1, ... along one axis of a value of this rank, to be compared with a value that has the extent 1 there.
Node places_along(Graph& graph, std::int64_t axis, std::int64_t rank, std::int64_t extent) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  extents[static_cast<std::size_t>(axis)] = extent;
  return reshape(counted(graph, extent), extents);
}

std::vector<Node> one_hot_of(Call& call) {
  const std::int64_t rank = call[0].shape().rank() + 1;
  const std::int64_t axis = normalise_axis(call.integer("axis", -1), rank);
  const std::int64_t depth = call.whole_number(1);
  if (call[2].shape() != Shape{2})
    throw UserError(fmt::format("its values must be two, off and on, not {}", to_string(call[2].shape())));
  const Node places = places_along(call.graph(), axis, rank, depth);
  const Node indices = unsqueeze(from_the_front(call[0], depth), axis);
  const Node off = reshape(slice(call[2], {.axis = 0, .start = 0, .stop = 1}), {});
  const Node on = reshape(slice(call[2], {.axis = 0, .start = 1, .stop = 2}), {});
  return {where(eq(indices, places), on, off)};
}

template <Node (*function)(Operand, std::int64_t, bool)>
std::vector<Node> place_of_best(Call& call) {
  const Node x = call[0];
  const std::int64_t axis = normalise_axis(call.integer("axis", 0), x.shape().rank());
  const bool keeps = call.flag("keepdims", true);
  if (!call.flag("select_last_index", false)) return {function(x, axis, keeps)};
  return {function(flip(x, {axis}), axis, keeps) * -1 + (x.shape()[axis] - 1)};
}

// Returns 1 at the largest element along an axis, the first one if there are several, and 0 elsewhere.
Node one_at_largest(const Node& x, std::int64_t axis) {
  const Node places = places_along(x.graph(), axis, x.shape().rank(), x.shape()[axis]);
  return cast(eq(argmax(x, axis, true), places), x.dtype());
}

std::vector<Node> hardmax(Call& call) {
  return {one_at_largest(call[0], normalise_axis(call.integer("axis", -1), call[0].shape().rank()))};
}

// Before version 13 the axes from `axis` on were taken together.
std::vector<Node> hardmax_from(Call& call) {
  const Shape& shape = call[0].shape();
  const std::int64_t axis = normalise_axis(call.integer("axis", 1), shape.rank());
  return {reshape(one_at_largest(as_matrix(call[0], axis), 1), shape.extents())};
}

std::vector<Node> top_k(Call& call) {
  call.ignore("sorted");
  const std::int64_t axis = call.integer("axis", -1);
  const auto k = call.has(1) ? call.whole_number(1) : call.integer("k", 1);
  const ValuesAndIndices best = topk(call[0], k, axis, call.flag("largest", true));
  return {best.values, best.indices};
}

std::vector<Node> cumulative_sum(Call& call) {
  const std::int64_t axis = call.whole_number(1);
  const bool exclusive = call.flag("exclusive", false);
  return {cumsum(call[0], {.axis = axis, .exclusive = exclusive, .reverse = call.flag("reverse", false)})};
}

// The rows whose condition is true. The condition must be known, since it determines the shape.
std::vector<Node> compress(Call& call) {
  const bool flat = !call.has_attribute("axis");
  const Node x = flat ? reshape(call[0], {-1}) : call[0];
  const std::int64_t axis = normalise_axis(call.integer("axis", 0), x.shape().rank());
  const std::vector<double> condition = call.value(1).to_doubles();
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) chosen.push_back(static_cast<std::int64_t>(i));
  if (!chosen.empty() && chosen.back() >= x.shape()[axis])
    throw UserError(fmt::format("its condition chooses index {} of axis {}, which has {}", chosen.back(),
                                axis, x.shape()[axis]));
  const auto count = static_cast<std::int64_t>(chosen.size());
  return {gather(x, call.graph().constant(Tensor::of({count}, chosen)), {.axis = axis})};
}

// Reverses the first lengths[b] elements of each batch.
std::vector<Node> reverse_sequence(Call& call) {
  const Node x = call[0];
  const std::int64_t rank = x.shape().rank();
  const std::int64_t time = normalise_axis(call.integer("time_axis", 0), rank);
  const std::int64_t batch = normalise_axis(call.integer("batch_axis", 1), rank);
  if (time == batch || call[1].shape() != Shape{x.shape()[batch]})
    throw UserError(fmt::format("lengths {} along axis {} do not fit the batches along axis {} of {}",
                                to_string(call[1].shape()), time, batch, to_string(x.shape())));
  std::vector<std::int64_t> along(static_cast<std::size_t>(rank), 1);
  along[static_cast<std::size_t>(batch)] = x.shape()[batch];
  const Node lengths = reshape(cast(call[1], DType::int64), along);
  const Node places = places_along(call.graph(), time, rank, x.shape()[time]);
  return {take_along_axis(x, where(lt(places, lengths), lengths - places - 1, places), time)};
}

constexpr Row rows_of_indices[] = {
    {"ArgMax", 1, place_of_best<argmax>},
    {"ArgMin", 1, place_of_best<argmin>},
    {"Compress", 9, compress},
    {"CumSum", 11, cumulative_sum},
    {"Gather", 1, gather_rows},
    {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd},
    {"Hardmax", 1, hardmax_from},
    {"Hardmax", 13, hardmax},
    {"OneHot", 9, one_hot_of},
    {"ReverseSequence", 10, reverse_sequence},
    {"Scatter", 9, scatter_elements},
    {"ScatterElements", 11, scatter_elements},
    {"ScatterND", 11, scatter_nd},
    {"TopK", 1, top_k},
};

}  // namespace

std::span<const Row> index_rows() { return rows_of_indices; }

}  // namespace plexaura::onnx
