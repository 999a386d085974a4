#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/averaging/elastic.h"
#include "distributed/averaging/local.h"
#include "distributed/communicator/communicator.h"
#include "distributed/compression/compression.h"
#include "distributed/servers/ranks/async_server.h"
#include "distributed/summing/bucket_sum.h"

namespace plexaura {

// Selects whether a thread exchanges gradients while later ones are computed.
enum class Overlap : std::uint8_t {
  automatic,  // on between hosts; off on one host, where the sums need the processors that compute
  on,
  both,  // also overlaps with the forward pass of the next step
  off
};
constexpr bool is_asked_for(Overlap overlap) { return overlap == Overlap::on || overlap == Overlap::both; }

struct StrategyOptions {
  std::string name = "allreduce";
  // Must be by_step if ranks may be outlived. Not used by send-recv and scatter-gather.
  BucketSum::Update update = BucketSum::Update::by_bucket;
  // True: makes a strategy even if there is one rank: for steps with several shards, and for state that it
  // keeps after other ranks were lost.
  bool even_alone = false;
  CompressionOptions compression = {};   // one of compressions_of() for the strategy
  Overlap overlap = Overlap::automatic;  // used by `allreduce` and `reduce-broadcast`
  // Options that only the strategy with the same name uses.
  LocalOptions local = {};
  ElasticOptions elastic = {};
  AsyncServerOptions async_server = {};  // used by `async-server` and `downpour`
};

// Returns the names that make_strategy() knows: the values of distributed.strategy.
const std::vector<std::string>& strategy_names();

// Returns the compressions that a strategy offers, for gradients or for changes of weights; at least `none`.
std::vector<std::string> compressions_of(std::string_view strategy);
// True if the strategy can sum gradients while others are computed.
bool can_overlap(std::string_view strategy);
// True if a strategy that can overlap does so with these options.
bool overlaps(const StrategyOptions& options, const Communicator& communicator);

// True if each rank has its own weights, with which it continues after other ranks were lost.
bool keeps_own_weights(std::string_view strategy);
// True if rank 0, or the first ranks, serve weights to clients that do not wait for each other.
bool has_parameter_server(std::string_view strategy);

// Makes the strategy `options.name`, which says how the ranks of this run work together:
//   allreduce         all ranks sum gradients, each its part; within a node directly in the arenas
//   reduce-broadcast  rank 0 sums the gradients, and sends the sums back
//   send-recv         rank 0 serves: it sums the gradients of the other ranks, and does not train
//   scatter-gather    rank 0 distributes the data, trains too, gathers the gradients, updates, and sends the
//                     weights
//   local             each rank trains by itself; from time to time their weights are averaged
//   elastic           each rank trains by itself, tied to a centre that from time to time moves towards the
//                     ranks
//   async-server      each rank except the servers trains at its own pace; rank 0, or the first ranks, serve
//                     and mix the others' weights into their own
//   downpour          the same, but the servers add the changes of the others' weights
// If Communicator::keeps_order(), all except async-server and downpour give the same bits in every run, and allreduce,
// reduce-broadcast, send-recv and scatter-gather give the same bits as one another if they do not compress, for every
// bucket size. Returns null if the communicator has one rank and options.even_alone is false: nothing is exchanged,
// and a step without a strategy has no host points. The communicator must outlive the strategy, which uses it on the
// training thread, between other calls on it; with overlap, or a delay of `local`, also on another thread. Throws
// UserError for an unknown name, and for options that the strategy does not offer; on all ranks if one has such
// options. Collective.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, Communicator& communicator);

}  // namespace plexaura
