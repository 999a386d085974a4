#include "distributed/strategies/async_server.h"

namespace plexaura {

AsyncServer::AsyncServer(Communicator& communicator, const AsyncServerOptions& options)
    : communicator_(communicator), mailbox_(communicator.mailbox("the letters of the parameter server")) {
  if (communicator.rank() < options.servers)
    server_ =
        std::make_unique<ParameterServer>(*mailbox_, options.servers, options.rule, options.max_staleness);
  else
    client_ = std::make_unique<ParameterClient>(*mailbox_, options.servers, options.rule, options.push_every,
                                                options.client, communicator.outlives_ranks());
}

void AsyncServer::begin(WeightsImmigration& border) {
  if (client_) client_->begin(border);
}

void AsyncServer::go_on_from(const Strategy& former) {
  const auto& before = dynamic_cast<const AsyncServer&>(former);
  if (client_)
    client_->go_on_from(*before.client_);
  else if (before.server_)
    server_->go_on_from(before.server_->table());
  begin_with(before.newest());  // so that it is not lost where another rank dies in what follows
  begin_with(newest_of(communicator_, newest()));
}

void AsyncServer::begin_with(const Snapshot& snapshot) {
  server_ ? server_->begin_with(snapshot) : client_->begin_with(snapshot);
}

// All pushes come to each server; how stale they are there is told of the first one.
std::string AsyncServer::account() const {
  const bool tells = server_ && communicator_.rank() == server_rank;
  return tells ? "clients of the parameter server\n" + server_->table().to_text() : "";
}

}  // namespace plexaura
