#include "core/vm/segments.h"

#include <algorithm>
#include <utility>

namespace plexaura {

std::vector<Segment> cut_segments(std::vector<HostPoint> points, std::size_t instructions) {
  std::ranges::stable_sort(points, {}, &HostPoint::instruction);
  std::vector<Segment> segments;
  Segment open{0, instructions};
  for (HostPoint& point : points) {
    if (point.enqueue) {
      open.inner.push_back(std::move(point));
      continue;
    }
    open.end = point.instruction;
    open.then = std::move(point.action);
    segments.push_back(std::exchange(open, {point.instruction, instructions}));
  }
  segments.push_back(std::move(open));
  return segments;
}

}  // namespace plexaura
