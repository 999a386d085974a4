#include "distributed/choices/exchange_cost.h"

namespace plexaura {
namespace {

double seconds_of_call(std::int64_t bytes, const CallSpeed& calls) {
  return calls.latency + static_cast<double>(bytes) / calls.bytes_per_second;
}

bool is_faster_beyond_doubt(const ExchangeWay& one, const ExchangeWay& other) {
  const double share = one.algorithm == other.algorithm ? clearly_faster_buckets : clearly_faster_algorithm;
  return one.seconds <= share * other.seconds && one.seconds <= other.seconds - least_saving_of_way;
}

}  // namespace

double expected_seconds(std::span<const std::int64_t> buckets, const CallSpeed& calls, bool overlaps) {
  double all = 0;
  for (const std::int64_t bytes : buckets) all += seconds_of_call(bytes, calls);
  return overlaps ? all + seconds_of_call(buckets.back(), calls) : all;
}

std::size_t choose_way(std::span<const ExchangeWay> ways) {
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < ways.size(); ++i)
    if (is_faster_beyond_doubt(ways[i], ways[chosen])) chosen = i;
  return chosen;
}

}  // namespace plexaura
