#pragma once

#include <cstdint>

#include "core/graph/op.h"

namespace plexaura {

// For builders: returns the axis counted from the front. An axis that does not exist is returned as it is, so that the
// shape rule refuses it.
inline std::int64_t counted_from_front(std::int64_t axis, std::int64_t rank) {
  return axis < 0 && axis >= -rank ? axis + rank : axis;
}

// For shape rules of ops whose axis counts from the front: returns the axis. Throws std::invalid_argument, whose text is
// only the rule, for an axis that does not exist, and RuleError for a negative one.
inline std::int64_t front_axis(std::int64_t axis, std::int64_t rank) {
  const std::int64_t from_front = normalise_axis(axis, rank);
  if (axis < 0) throw RuleError("the axis of this op must count from the front; call its builder");
  return from_front;
}

// A row-major value, viewed as [before, extent, behind]: the axes before an axis, the axis itself, and the axes
// after it. The elements along the axis are a line. There are before * behind lines.
struct Lines {
  std::int64_t before = 1;
  std::int64_t extent = 1;
  // Product of the extents after the axis; also the distance between neighbours on a line.
  std::int64_t behind = 1;

  // `axis` counts from the front.
  static Lines along(const Shape& shape, std::int64_t axis) {
    Lines lines{1, shape[axis], 1};
    for (std::int64_t i = 0; i < axis; ++i) lines.before *= shape[i];
    for (std::int64_t i = axis + 1; i < shape.rank(); ++i) lines.behind *= shape[i];
    return lines;
  }

  std::int64_t count() const { return before * behind; }
  // The place of a line's first element.
  std::int64_t first(std::int64_t line) const { return line / behind * extent * behind + line % behind; }
};

}  // namespace plexaura
