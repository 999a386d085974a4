#include "tests/distributed/compression/exchanges.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing {

namespace {

Placement placement_of(std::vector<std::vector<std::int64_t>> shapes, std::int64_t elements) {
  if (shapes.empty()) shapes.push_back({elements});
  Placement placement{ArenaTypes::all(DType::float32), {}};
  for (const std::vector<std::int64_t>& extents : shapes)
    placement.append(fmt::format("weight{}", placement.entries.size()), {DType::float32, Shape(extents)},
                     ParameterRole::trainable, Layout::row_major(static_cast<int>(extents.size())));
  return placement;
}

void on_ranks(ThreadNetwork& network, const Places& places, const std::function<void(Communicator&)>& body) {
  const CommunicatorOptions options{.shared_memory = places.share_memory};
  for (const std::string& end : with_hosts(network, places.hosts, options, body))
    if (end != "fine") throw InternalError("test failed: a rank " + end);
}

}  // namespace

std::vector<std::vector<Exchanged>> exchange(const CompressionOptions& options, const Places& places,
                                             int steps,
                                             const std::function<Floats(int rank, int step)>& gradient,
                                             const std::vector<std::vector<std::int64_t>>& shapes,
                                             const std::vector<StrategyState>& state) {
  std::vector<std::vector<Exchanged>> seen(static_cast<std::size_t>(steps),
                                           std::vector<Exchanged>(places.hosts.size()));
  ThreadNetwork network(static_cast<int>(places.hosts.size()));
  on_ranks(network, places, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    Floats owed(gradient(rank, 0).size());
    Floats sums(owed.size());
    const auto elements = static_cast<std::int64_t>(owed.size());
    const Placement placement = placement_of(shapes, elements);
    const std::vector<Bucket> buckets{{0, elements, DType::float32}};
    const auto compression = make_compression(options, communicator);
    compression->begin(placement, buckets);
    for (const StrategyState& part : state) compression->take(part);
    for (int step = 0; step < steps; ++step) {
      const Floats more = gradient(rank, step);
      for (std::size_t i = 0; i < owed.size(); ++i) owed[i] += more[i];
      compression->exchange(0, owed, sums, "a bucket");
      seen[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)] = {sums, owed};
    }
  });
  return seen;
}

std::size_t bytes_sent(const CompressionOptions& options, int ranks, const std::vector<std::int64_t>& shape) {
  std::size_t sent = 0;
  ThreadNetwork network(ranks);
  on_ranks(network, ranks, [&](Communicator& communicator) {
    const Placement placement = placement_of({shape}, 0);
    const std::int64_t count = placement.count(ParameterRole::trainable);
    const std::vector<Bucket> buckets{{0, count, DType::float32}};
    const auto compression = make_compression(options, communicator);
    Floats owed(static_cast<std::size_t>(count), 1.0F);
    Floats sums(owed.size());
    compression->begin(placement, buckets);
    const std::size_t before = network.bytes_sent(0, 1);
    compression->exchange(0, owed, sums, "a bucket");
    if (communicator.rank() == 0) sent = network.bytes_sent(0, 1) - before;
  });
  return sent;
}

}  // namespace plexaura::testing
