#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <variant>
#include <vector>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Parts of a value by index: x[2] is element 2 of the first axis, x[slice(1, 4)] has its elements 1, 2 and 3, and
// x[{slice(1, 4), -1}] has the last element of the second axis of these. An index removes its axis, and a slice keeps it.
// Axes without an index are kept as they are. Indices are known when the graph is built: for those in a node see gather().
// Throws UserError for an index that the axis does not have, and for more indices than axes.

// Some indices of an axis: see slice().
struct IndexRange {
  std::optional<std::int64_t> start = {};
  std::optional<std::int64_t> stop = {};
  std::int64_t step = 1;
};

// The indices start, start + step, ... up to but not including stop, as in SliceOptions. Either end may be {}: slice({}, {})
// is a whole axis.
inline IndexRange slice(WrittenInteger auto start, std::optional<std::int64_t> stop, std::int64_t step = 1) {
  return {static_cast<std::int64_t>(start), stop, step};
}
inline IndexRange slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
                        std::int64_t step = 1) {
  return {start, stop, step};
}

// The part of one axis that a subscript selects: a single index, of which negative ones count from the end,
// or a range of indices.
struct AxisIndex {
  AxisIndex(WrittenInteger auto index) : selected(static_cast<std::int64_t>(index)) {}
  AxisIndex(IndexRange range) : selected(range) {}

  std::variant<std::int64_t, IndexRange> selected;
};

// The argument of Node::operator[], together with its source line.
struct Subscript {
  using Where = std::source_location;

  Subscript(WrittenInteger auto index, Where at = Where::current()) : axes{index}, where(at) {}
  Subscript(IndexRange range, Where at = Where::current()) : axes{range}, where(at) {}
  Subscript(std::initializer_list<AxisIndex> of_axes, Where at = Where::current())
      : axes(of_axes), where(at) {}

  std::vector<AxisIndex> axes;  // one index for each axis, from the first axis on
  Where where;
};

}  // namespace plexaura
