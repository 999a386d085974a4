#include "distributed/compression/host_compression.h"

#include <algorithm>
#include <array>

namespace plexaura {
namespace {

constexpr std::string_view finding_hosts = "the ranks that compress for their hosts";

// The seconds that a rank waits for the first rank of its host. They are many, because a link between hosts
// may be slow. The first ranks have deadlines of their own, and if one of these passes, all ranks learn of
// it.
constexpr double seconds_between_hosts = 7.0 * 24 * 3600;

}  // namespace

HostCompression::HostCompression(Communicator& ranks, const Make& make)
    : host_(ranks.split(ranks.place().index, finding_hosts)),
      peers_(ranks.split(ranks.place().rank, finding_hosts)),
      compression_(make(*peers_)) {
  host_->choose_algorithm("auto");  // `auto` is an algorithm that keeps the order of sums
}

void HostCompression::begin(const Placement& placement, std::span<const Bucket> buckets) {
  compression_->begin(placement, buckets);
}

void HostCompression::exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                               std::string_view what) {
  host_->sum(DType::float32, std::as_writable_bytes(owed).data(), std::ssize(owed), what);
  if (is_first())
    compression_->exchange(bucket, owed, sums, what);
  else
    std::ranges::fill(owed, 0.0F);
  await_first(what);
  const std::span<std::byte> bytes = std::as_writable_bytes(sums);
  host_->broadcast(bytes.data(), bytes.size(), 0, what);
}

// Waits until the first rank of this host has the sums. The first rank informs the others.
void HostCompression::await_first(std::string_view what) {
  std::array<std::byte, 1> note{};
  if (!is_first()) return host_->receive({.rank = 0, .deadline_seconds = seconds_between_hosts}, note, what);
  for (int other = 1; other < host_->size(); ++other) host_->send({.rank = other}, note, what);
}

std::vector<Crossing> HostCompression::crossings(std::size_t bucket, std::int64_t elements, int ranks) const {
  return compression_->crossings(bucket, elements, ranks);
}

std::int64_t HostCompression::bytes_sent() const { return peers_->bytes_sent().value_or(0); }

void HostCompression::keep(std::vector<StrategyState>& state) const { compression_->keep(state); }

void HostCompression::take(const StrategyState& part) { compression_->take(part); }

}  // namespace plexaura
