#include "core/vm/segments.h"

#include <algorithm>

namespace plexaura {

std::vector<Segment> cut_segments(std::vector<HostPoint> points, std::size_t instructions) {
  std::ranges::stable_sort(points, {}, &HostPoint::instruction);
  std::vector<Segment> segments;
  std::size_t begin = 0;
  for (HostPoint& point : points) {
    segments.push_back({begin, point.instruction, std::move(point.action)});
    begin = point.instruction;
  }
  segments.push_back({begin, instructions});
  return segments;
}

}  // namespace plexaura
