#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "distributed/communicator/time_calls.h"

// What an exchange of gradients is expected to take in buckets of one size or another, and which are taken by that. Nothing
// here measures: see choose_exchange.h.
namespace plexaura {

// One way to exchange gradients.
struct ExchangeWay {
  std::string algorithm = {};
  std::int64_t bucket_bytes = 0;  // least size of a bucket
  double seconds = 0;             // expected of each step
};

// What the backward pass hides nobody knows before the first step. So all buckets count, and where the exchange overlaps with it
// the last one of gradients a second time: that one it never hides. `buckets`: the bytes of each, without the one of buffers and tail, at least one.
double expected_seconds(std::span<const std::int64_t> buckets, const CallSpeed& calls, bool overlaps);

// A way is clearly faster than another one that takes at most this share of its seconds, and saves so many of them. Algorithms are
// measured one after the other, so that what disturbs one need not disturb the next.
inline constexpr double clearly_faster_buckets = 0.75;
inline constexpr double clearly_faster_algorithm = 0.5;
inline constexpr double least_saving_of_way = 1e-4;

// Begins with the first way, and goes on to a later one only where that is clearly faster than the one it has got. Gives the
// place of the choice.
std::size_t choose_way(std::span<const ExchangeWay> ways);

}  // namespace plexaura
