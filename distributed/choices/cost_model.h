#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "distributed/communicator/time_calls.h"
#include "distributed/compression/compression.h"

// Estimates how long an exchange of gradients takes with each compression, with each algorithm and with buckets of each size, and
// chooses by these estimates. Nothing here measures: choose_compression.h and choose_exchange.h do.
namespace plexaura {

// The speed of the links between hosts. The time of a call of all ranks is the latency, plus the bytes that
// leave the busiest host divided by the rate.
struct LinkSpeed {
  double latency = 0;  // seconds of a call that sends almost nothing
  double sum_bytes_per_second = std::numeric_limits<double>::infinity();
  double block_bytes_per_second = std::numeric_limits<double>::infinity();
};

struct RankPlaces {
  std::vector<int> host_of = {};  // the number of each rank's host; hosts are numbered by their lowest rank
  bool shares_memory = false;     // true: ranks of a host share memory, so that they add before they send

  int hosts() const;
};

// Returns the places of the ranks that compress: one rank of each host if hosts_add_first(), otherwise all ranks.
RankPlaces places_that_compress(const RankPlaces& places);

// Returns the bytes that leave the host that sends most. Sums are computed by the algorithm `hierarchical`.
double bytes_leaving(const RankPlaces& places, const Crossing& crossing);

// The work of a method of compression in one step.
struct MethodWork {
  std::string name = {};
  RankPlaces places = {};      // places of the ranks that make the method's calls
  double compute_seconds = 0;  // seconds within a host to add up, to compress and to decompress
  // The calls for each bucket of gradients, in the order in which the backward pass finishes the buckets.
  std::vector<std::vector<Crossing>> buckets = {};
};

// The seconds by which a method makes a step longer.
struct ExpectedSeconds {
  std::string name = {};
  double least = 0;  // seconds if the backward pass hides all that it can hide
  double most = 0;   // seconds if the backward pass hides nothing
};

// With overlap the backward pass can hide the calls of all buckets but the last one. It never hides what the processor computes for
// the method, because that takes the cores of the backward pass.
ExpectedSeconds expected_seconds(const MethodWork& work, const LinkSpeed& links, bool overlaps);

// A way to exchange gradients: an algorithm, and a size of buckets.
struct ExchangeWay {
  std::string algorithm = {};
  std::int64_t bucket_bytes = 0;  // least size of a bucket
  double seconds = 0;             // estimated seconds for each step; 0 if they were not estimated
};

// Returns the seconds of an exchange that the backward pass may not hide. How much it hides is unknown before
// the first step. So all buckets count, and with overlap the last one counts twice, because the backward pass
// never hides it. `buckets` has the bytes of each bucket of gradients, and at least one bucket.
double expected_seconds(std::span<const std::int64_t> buckets, const CallSpeed& calls, bool overlaps);

// True if `one` takes at most a certain share of the seconds of `other`, and saves at least a certain number
// of seconds. Methods of compression have to be faster in both of their estimates. The share is smaller for
// another algorithm than for another size of buckets: algorithms are measured one after the other, and a
// disturbance may slow down only one of them.
bool is_clearly_faster(const ExpectedSeconds& one, const ExpectedSeconds& other);
bool is_clearly_faster(const ExchangeWay& one, const ExchangeWay& other);

// Returns the index of the choice. Begins with the first candidate, and replaces it by a later one only if
// that is clearly faster. So the first candidates should be the methods that change gradients least, or the
// defaults.
template <class Candidate>
std::size_t choose(const std::vector<Candidate>& candidates) {
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (is_clearly_faster(candidates[i], candidates[chosen])) chosen = i;
  return chosen;
}

}  // namespace plexaura
