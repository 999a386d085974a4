#include "distributed/choices/cost_model.h"

#include <algorithm>

#include "distributed/sums/sum_order.h"

namespace plexaura {
namespace {

using Ranks = std::vector<int>;

std::vector<Ranks> ranks_by_host(const RankPlaces& places) {
  std::vector<Ranks> hosts(static_cast<std::size_t>(places.hosts()));
  for (std::size_t rank = 0; rank < places.host_of.size(); ++rank)
    hosts[static_cast<std::size_t>(places.host_of[rank])].push_back(static_cast<int>(rank));
  return hosts;
}

// Returns the bytes that leave a host in a sum of `bytes`. Each host owns a share of the elements. The host
// sends to each other host its own sums of that host's share, one for each block of ranks, and the whole sums
// of its own share.
double of_hosts_that_add(const Ranks& host, double hosts, int ranks, double bytes) {
  const auto blocks = static_cast<double>(blocks_among(host, ranks).size());
  return (hosts - 1) * (blocks + 1) * bytes / hosts;
}

// Returns the bytes that leave a host if each of its ranks exchanges shares with each rank of other hosts.
// `pairs` is the number of such pairs of ranks.
double of_ranks_that_add(double pairs, double ranks, double bytes) { return pairs * 2 * bytes / ranks; }

bool is_clearly_less(double one, double other, double share, double least_saving) {
  return one <= share * other && one <= other - least_saving;
}

// The seconds of one exchange: of all buckets together, and of the last one alone.
struct CallSeconds {
  double all = 0;
  double last = 0;
};

template <class Buckets, class SecondsOf>
CallSeconds call_seconds(const Buckets& buckets, const SecondsOf& seconds_of) {
  CallSeconds seconds;
  for (const auto& bucket : buckets) {
    seconds.last = seconds_of(bucket);
    seconds.all += seconds.last;
  }
  return seconds;
}

double seconds_of(const std::vector<Crossing>& bucket, const RankPlaces& places, const LinkSpeed& links) {
  double seconds = 0;
  for (const Crossing& crossing : bucket) {
    const bool are_blocks = crossing.call == Crossing::Call::blocks;
    const double speed = are_blocks ? links.block_bytes_per_second : links.sum_bytes_per_second;
    seconds += links.latency + bytes_leaving(places, crossing) / speed;
  }
  return seconds;
}

}  // namespace

int RankPlaces::hosts() const { return 1 + std::ranges::max(host_of); }

RankPlaces places_that_compress(const RankPlaces& places) {
  if (!hosts_add_first(places.hosts(), static_cast<int>(places.host_of.size()))) return places;
  RankPlaces first_ranks;
  for (int host = 0; host < places.hosts(); ++host) first_ranks.host_of.push_back(host);
  return first_ranks;
}

double bytes_leaving(const RankPlaces& places, const Crossing& crossing) {
  const auto bytes = static_cast<double>(crossing.bytes);
  const auto ranks = static_cast<double>(places.host_of.size());
  const bool hosts_add = crossing.call == Crossing::Call::sum_in_windows && places.shares_memory;
  double most = 0;
  for (const Ranks& host : ranks_by_host(places)) {
    const auto here = static_cast<double>(host.size());
    const double pairs = here * (ranks - here);  // pairs of a rank on this host and a rank elsewhere
    double leaving = pairs * bytes;
    if (hosts_add)
      leaving = of_hosts_that_add(host, places.hosts(), static_cast<int>(places.host_of.size()), bytes);
    else if (crossing.call != Crossing::Call::blocks)
      leaving = of_ranks_that_add(pairs, ranks, bytes);
    most = std::max(most, leaving);
  }
  return most;
}

ExpectedSeconds expected_seconds(const MethodWork& work, const LinkSpeed& links, bool overlaps) {
  const CallSeconds calls =
      call_seconds(work.buckets, [&](const auto& bucket) { return seconds_of(bucket, work.places, links); });
  return {work.name, work.compute_seconds + (overlaps ? calls.last : calls.all),
          work.compute_seconds + calls.all};
}

double expected_seconds(std::span<const std::int64_t> buckets, const CallSpeed& calls, bool overlaps) {
  const CallSeconds seconds = call_seconds(buckets, [&](std::int64_t bytes) {
    return calls.latency + static_cast<double>(bytes) / calls.bytes_per_second;
  });
  return seconds.all + (overlaps ? seconds.last : 0);
}

bool is_clearly_faster(const ExpectedSeconds& one, const ExpectedSeconds& other) {
  constexpr double share = 0.75;
  constexpr double least_saving = 1e-3;
  return is_clearly_less(one.least, other.least, share, least_saving) &&
         is_clearly_less(one.most, other.most, share, least_saving);
}

bool is_clearly_faster(const ExchangeWay& one, const ExchangeWay& other) {
  const double share = one.algorithm == other.algorithm ? 0.75 : 0.5;
  return is_clearly_less(one.seconds, other.seconds, share, 1e-4);
}

}  // namespace plexaura
