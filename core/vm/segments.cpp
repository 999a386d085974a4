#include "core/vm/segments.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

std::vector<Segment> cut_segments(std::vector<HostPoint> points, std::span<const Instruction> instructions) {
  std::ranges::stable_sort(points, {}, &HostPoint::instruction);
  if (!points.empty() && points.back().instruction > instructions.size())
    throw InternalError(fmt::format("the host point {} is at place {} of a program of {} instructions",
                                    points.back().id, points.back().instruction, instructions.size()));
  std::vector<Segment> segments(1);
  const auto cut = [&](std::size_t place) {
    segments.back().end = place;
    segments.push_back({.begin = place});
  };
  auto point = points.begin();
  for (std::size_t place = 0; place <= instructions.size(); ++place) {
    if (place > 0 && is_on_host(instructions[place - 1])) {
      segments.back().ends_on_host = true;
      cut(place);
    }
    for (; point != points.end() && point->instruction == place; ++point) {
      if (point->enqueue) {
        segments.back().inner.push_back(std::move(*point));
      } else {
        segments.back().then = point->id;
        cut(place);
      }
    }
  }
  segments.back().end = instructions.size();
  return segments;
}

}  // namespace plexaura
