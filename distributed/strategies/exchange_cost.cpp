#include "distributed/strategies/exchange_cost.h"

#include <algorithm>

namespace plexaura {
namespace {

bool is_clearly_faster(const ExchangeWay& one, const ExchangeWay& other) {
  const double share = one.algorithm == other.algorithm ? clearly_faster_buckets : clearly_faster_algorithm;
  return one.seconds <= share * other.seconds && one.seconds <= other.seconds - least_saving_of_way;
}

}  // namespace

void CallTimes::add(std::int64_t bytes, double seconds) {
  points_.push_back({static_cast<double>(bytes), seconds});
}

double CallTimes::seconds(std::int64_t bytes) const {
  const auto size = static_cast<double>(bytes);
  std::size_t end = 1;
  while (end + 1 < points_.size() && points_[end].bytes < size) ++end;
  const Point& from = points_[end - 1];
  const Point& to = points_[end];
  const double each = std::max(to.seconds - from.seconds, 0.0) / (to.bytes - from.bytes);
  return from.seconds + each * std::max(size - from.bytes, 0.0);
}

double expected_seconds(std::span<const std::int64_t> buckets, const CallTimes& calls, bool overlaps) {
  double all = 0;
  for (const std::int64_t bytes : buckets) all += calls.seconds(bytes);
  return overlaps ? all + calls.seconds(buckets.back()) : all;
}

std::size_t choose_way(std::span<const ExchangeWay> ways) {
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < ways.size(); ++i)
    if (is_clearly_faster(ways[i], ways[chosen])) chosen = i;
  return chosen;
}

}  // namespace plexaura
