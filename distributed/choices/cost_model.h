#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "distributed/compression/compression.h"

// What an exchange of gradients is expected to take with each compression, and which one `distributed.compression: auto`
// takes by that. Nothing here measures: see choose_compression.h.
namespace plexaura {

// What a call of all ranks takes: a line over the bytes that leave the host which sends most.
struct LinkSpeed {
  double latency = 0;  // seconds, of any call with next to nothing to send
  double sum_bytes_per_second = std::numeric_limits<double>::infinity();
  double block_bytes_per_second = std::numeric_limits<double>::infinity();
};

struct RankPlaces {
  std::vector<int> host_of = {};  // the number of each rank's host, counted by lowest rank
  bool shares_memory = false;     // the ranks of a host, so that together they send one sum

  int hosts() const;
};

// Those that compress: all ranks, or where hosts_add_first() one rank of each host.
RankPlaces places_that_compress(const RankPlaces& places);

// The bytes that leave the host which sends most. Sums are those of the algorithm `hierarchical`.
double bytes_leaving(const RankPlaces& places, const Crossing& crossing);

// What a method does in a step.
struct MethodWork {
  std::string name = {};
  RankPlaces places = {};      // of the ranks that make its calls
  double compute_seconds = 0;  // within a host: to add up, to compress and to put together again
  // What crosses of each bucket of gradients, in the order in which they are final.
  std::vector<std::vector<Crossing>> buckets = {};
};

// How much longer a method makes a step: between what it is if the backward pass hides all that it can, and if it
// hides nothing.
struct ExpectedSeconds {
  std::string name = {};
  double least = 0;
  double most = 0;
};

// With overlap the backward pass can hide what the ranks wait for each other: that of all buckets but the last one. It hides
// nothing of what the processor computes, which takes the cores of the backward pass itself.
ExpectedSeconds expected_seconds(const MethodWork& work, const LinkSpeed& links, bool overlaps);

// A method is clearly faster than another one that takes at most this share of its seconds, and saves so many of them.
inline constexpr double clearly_faster = 0.75;
inline constexpr double least_saving = 1e-3;

// Begins with the first method, and goes on to a later one only where that is clearly faster than the one it has got, whatever the
// backward pass hides. So methods that change gradients less come first. Gives the place of the choice.
std::size_t choose(std::span<const ExpectedSeconds> methods);

}  // namespace plexaura
