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
  // How many ranks serve, each with a shard of the weights: the first ones, and not all. No rank is outlived where
  // there are several.
  int servers = 1;
  // How many ranks are one client, which follow each other. No rank is outlived where they are several.
  int group = 1;
  ServerRule rule = {};
  double push_limit = PushJudge::default_limit;
  std::optional<std::int64_t> push_every = 16;     // steps; none: each client pushes at the end of an epoch
  std::optional<std::int64_t> max_staleness = {};  // see ParameterServer; none: no client waits for another
  ClientKind client = ClientKind::serial;
};

// The strategies `async-server` and `downpour`, which differ in their ServerRule: rank 0 is an asynchronous parameter
// server, or the first of several. All others are clients, which train on what they draw, at their own pace, and exchange
// weights with the servers alone. They meet at the end of an epoch, where all take the weights of the server: these are
// validated and saved. A client may be a ClientGroup. Buffers travel like weights; frozen parameters do not. Where the communicator outlives ranks, and the
// server has died, one made of those that are left serves from the newest snapshot that any of them has.
class AsyncServer final : public Strategy {
 public:
  // Collective over all ranks, the server among them. The communicator must outlive it.
  AsyncServer(Communicator& communicator, const AsyncServerOptions& options);

  StrategyParts parts() override;
  void begin(WeightsImmigration& border) override;
  void give_up() noexcept override;
  void end() override;
  // Collective.
  void go_on_from(const Strategy& former) override;
  std::string account() const override;

 private:
  Snapshot newest() const { return server_ ? server_->newest() : client_->newest(); }
  void begin_with(const Snapshot& snapshot);

  Communicator& communicator_;
  std::unique_ptr<Mailbox> mailbox_;
  // One of them; neither on a rank that is not the lowest of its group.
  std::unique_ptr<ParameterServer> server_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<ClientGroup> group_;  // of a rank that trains, where clients have several
};

}  // namespace plexaura
