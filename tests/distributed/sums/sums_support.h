#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/thread_transport.h"

namespace plexaura::testing {

// Runs the body on ranks that are threads of this process and behave as if they ran on these hosts. Returns
// how each rank ended.
inline std::vector<std::string> with_hosts(ThreadNetwork& network, const std::vector<std::string>& hosts,
                                           const CommunicatorOptions& options,
                                           const std::function<void(Communicator&)>& body) {
  return endings(static_cast<int>(hosts.size()), [&](int rank) {
    ProcessPlace place = this_place();
    place.host = hosts[static_cast<std::size_t>(rank)];
    GroupCommunicator ranks(network.transport(rank), options, nullptr, place);
    body(ranks);
    ranks.leave(0);
  });
}

// Returns values of very different sizes, so that other orders of adding give other bits.
template <class T>
T summand(int rank, std::int64_t i) {
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(i) * 31 + static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15U;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(mixed);
  else
    return static_cast<T>(
        std::ldexp(static_cast<double>(mixed >> 12) - 0x1p51, -static_cast<int>(mixed % 40)));
}

template <class T>
std::vector<T> summands(int rank, std::int64_t count) {
  std::vector<T> made;
  for (std::int64_t i = 0; i < count; ++i) made.push_back(summand<T>(rank, i));
  return made;
}

// Returns the sum of the ranks [first, last) in the order of sum_order.h.
template <class T>
T sum_of(int first, int last, std::int64_t i) {
  if (last - first == 1) return summand<T>(first, i);
  int half = 1;
  while (2 * half < last - first) half *= 2;
  const T left = sum_of<T>(first, first + half, i);
  const T right = sum_of<T>(first + half, last, i);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
  else
    return left + right;
}

template <class T>
std::vector<T> sums(int ranks, std::int64_t count) {
  std::vector<T> made;
  for (std::int64_t i = 0; i < count; ++i) made.push_back(sum_of<T>(0, ranks, i));
  return made;
}

}  // namespace plexaura::testing
