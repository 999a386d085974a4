#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"
#include "distributed/servers/push_judge.h"
#include "distributed/servers/ranks/client_group.h"
#include "distributed/servers/ranks/parameter_client.h"
#include "distributed/servers/ranks/parameter_server.h"
#include "distributed/servers/server_rule.h"

namespace plexaura {

struct AsyncServerOptions {
  // The number of ranks that serve, each with a shard of the weights. They are the first ranks, and at least
  // one rank must train. With several servers the run ends when a rank dies.
  int servers = 1;
  // The number of consecutive ranks that form one client. With several ranks in a client the run ends when a
  // rank dies.
  int group = 1;
  ServerRule rule = {};
  double push_limit = PushJudge::default_limit;
  // Number of steps between two pushes; empty: each client pushes only at the end of an epoch.
  std::optional<std::int64_t> push_every = 16;
  // See ParameterServer. Empty: no client waits for another one.
  std::optional<std::int64_t> max_staleness = {};
  ClientKind client = ClientKind::serial;
};

// The strategies `async-server` and `downpour`, which differ in their ServerRule. Rank 0 is an asynchronous parameter server, or
// the first of several. All other ranks are clients: they train at their own pace on the data that they draw, and exchange weights
// only with the servers. At the end of an epoch all clients take the weights of the server, which are then validated and saved. A client
// may be a ClientGroup. Buffers travel like weights; frozen parameters do not travel. If the communicator outlives ranks and the server
// dies, the strategy that is made for the remaining ranks serves from the newest snapshot that any of them has.
class AsyncServer final : public Strategy {
 public:
  // Collective over all ranks, servers included. The communicator must outlive this object.
  AsyncServer(Communicator& communicator, const AsyncServerOptions& options);

  StrategyParts parts() override;
  void begin(WeightsImmigration& border) override;
  void give_up() noexcept override;
  void end() override;
  // Continues the account of the former strategy. All ranks call it together.
  void continue_from(const Strategy& former) override;
  std::string account() const override;

 private:
  Snapshot newest() const { return server_ ? server_->newest() : client_->newest(); }
  void begin_with(const Snapshot& snapshot);

  Communicator& communicator_;
  std::unique_ptr<Mailbox> mailbox_;
  // A rank has at most one of server_ and client_. A rank that trains has no client if it is not the lowest of its group.
  std::unique_ptr<ParameterServer> server_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<ClientGroup> group_;  // null on ranks that serve, and if a client is a single rank
};

}  // namespace plexaura
