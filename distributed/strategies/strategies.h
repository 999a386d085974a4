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

// Whether gradients cross while later ones are computed, by a thread of its own.
enum class Overlap : std::uint8_t {
  automatic,  // between hosts; on one host the sums need the processors that compute
  on,
  both,  // and while the next step begins
  off
};
constexpr bool is_asked_for(Overlap overlap) { return overlap == Overlap::on || overlap == Overlap::both; }

struct StrategyOptions {
  std::string name = "allreduce";
  // Of all but send-recv and scatter-gather: by_step where ranks may be outlived.
  BucketSum::Update update = BucketSum::Update::by_bucket;
  // One rank has a strategy, too: for steps of several shards, and for what it keeps where the others were lost.
  bool even_alone = false;
  CompressionOptions compression = {};   // one of compressions_of() the strategy
  Overlap overlap = Overlap::automatic;  // of `allreduce` and `reduce-broadcast`
  // Of the strategies of these names.
  LocalOptions local = {};
  ElasticOptions elastic = {};
  AsyncServerOptions async_server = {};  // of `async-server` and `downpour`
};

// The names that make_strategy() knows: the values of distributed.strategy.
const std::vector<std::string>& strategy_names();

// Those of compression_names() that a strategy has, for gradients or for changes of weights; always `none`.
std::vector<std::string> compressions_of(std::string_view strategy);
// Whether a strategy sums gradients while others are computed where it is asked to.
bool can_overlap(std::string_view strategy);
// Whether one that can does so by these options.
bool overlaps(const StrategyOptions& options, const Communicator& communicator);

// Whether the weights of each rank are its own, so that it goes on with these where others are lost.
bool keeps_own_weights(std::string_view strategy);
// Whether rank 0, or the first ranks, serve weights to clients that do not wait for each other.
bool has_parameter_server(std::string_view strategy);

// How the ranks of this run work together:
//   allreduce         gradients are summed by all ranks, each its part, inside a node right where they lie
//   reduce-broadcast  gradients are summed by rank 0, which sends the sums back
//   send-recv         gradients of the others are summed by rank 0, which serves and does not train
//   scatter-gather    rank 0 deals out the data, trains too, gathers the gradients, updates, and sends the weights
//   local             each rank trains for itself; now and then their weights are averaged
//   elastic           each rank trains for itself, tied to a centre that now and then follows them
//   async-server      each rank but 0 trains at its own pace; rank 0, or the first ones, mix their weights into their own
//   downpour          the same, but rank 0 adds up how their weights have changed
// All but async-server and downpour give the same bits in every run where Communicator::keeps_order(); allreduce,
// reduce-broadcast, send-recv and scatter-gather then give those of one another, for every size of the buckets. Null where the
// communicator has one rank: there is nothing to exchange, and a step without a strategy has no host points.
// The communicator must outlive the strategy and is used by it on the thread that trains, between other calls
// on that thread; with overlap on another thread, too, during a step. Throws UserError for an unknown name, and for a compression
// that the strategy has not, on all ranks where one has it. Collective.
std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, Communicator& communicator);

}  // namespace plexaura
