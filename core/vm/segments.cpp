#include "core/vm/segments.h"

#include <algorithm>
#include <utility>

namespace plexaura {

std::vector<Segment> cut_segments(std::vector<HostPoint> points, std::span<const Instruction> instructions) {
  std::ranges::stable_sort(points, {}, &HostPoint::instruction);
  std::vector<Segment> segments;
  Segment open;
  const auto cut = [&](std::size_t place) {
    open.end = place;
    segments.push_back(std::exchange(open, {.begin = place}));
  };
  auto point = points.begin();
  for (std::size_t place = 0; place <= instructions.size(); ++place) {
    open.ends_on_host = place > 0 && is_on_host(instructions[place - 1]);
    if (open.ends_on_host) cut(place);
    for (; point != points.end() && point->instruction == place; ++point) {
      if (point->enqueue) {
        open.inner.push_back(std::move(*point));
        continue;
      }
      open.then = point->id;
      cut(place);
    }
  }
  cut(instructions.size());
  return segments;
}

}  // namespace plexaura
