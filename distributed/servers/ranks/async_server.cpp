#include "distributed/servers/ranks/async_server.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

constexpr std::string_view letters = "the letters of the parameter server";

// Throws UserError on all ranks if the ranks that train cannot be divided into groups. If no rank trains,
// Roles reports that.
void check_groups(Communicator& communicator, int servers, int group) {
  const int training = communicator.size() - servers;
  if (training % group == 0) return;
  const UserError error(fmt::format(
      "{} ranks train, and distributed.group makes clients of {} ranks each; start another number of "
      "ranks, or change one of the two",
      training, group));
  agree_on_error(communicator, std::make_exception_ptr(error), "the groups of clients");
}

}  // namespace

AsyncServer::AsyncServer(Communicator& communicator, const AsyncServerOptions& options)
    : communicator_(communicator) {
  const int servers = std::min(options.servers, communicator.size());
  check_groups(communicator, servers, options.group);
  // This rank's number among the ranks that train; negative: this rank serves.
  const int trainer = communicator.rank() - servers;
  const bool writes = trainer < 0 || trainer % options.group == 0;
  if (options.group == 1) {
    mailbox_ = communicator.mailbox(letters);
  } else {
    const auto writing = communicator.split(writes ? 0 : 1, letters);
    if (writes) mailbox_ = writing->mailbox(letters);
  }
  if (trainer < 0)
    server_ = std::make_unique<ParameterServer>(*mailbox_, servers, options.rule, options.max_staleness,
                                                options.push_limit, communicator.outlives_ranks());
  else if (writes)
    client_ = std::make_unique<ParameterClient>(*mailbox_, servers, options.rule, options.push_every,
                                                options.client, communicator.outlives_ranks());
  if (options.group == 1) return;
  auto trainers = communicator.split(trainer < 0 ? 0 : 1, "the ranks that train");
  if (trainer >= 0)
    group_ = std::make_unique<ClientGroup>(std::move(trainers), options.group, client_.get(),
                                           options.max_staleness.has_value());
}

StrategyParts AsyncServer::parts() {
  StrategyParts parts{.server = server_.get(), .scope = GradientScope::local, .realigns_weights = true};
  if (server_) return parts;
  parts.shows_weights = true;
  parts.weights = client_.get();
  parts.dealer = client_.get();
  if (!group_) return parts;
  parts.gradients = group_.get();
  parts.weights = group_.get();
  parts.dealer = group_.get();
  parts.state = group_.get();
  return parts;
}

void AsyncServer::begin(WeightsImmigration& border) {
  if (client_) client_->begin(border);
  if (group_) group_->begin(border);
}

void AsyncServer::give_up() noexcept {
  if (client_) client_->give_up();
}

void AsyncServer::end() {
  if (client_) client_->leave();
}

void AsyncServer::continue_from(const Strategy& former) {
  const auto& before = dynamic_cast<const AsyncServer&>(former);
  if (client_)
    client_->continue_from(*before.client_);
  else if (before.server_)
    server_->continue_from(before.server_->table());
  begin_with(before.newest());  // keeps the snapshot, in case another rank dies in the next call
  begin_with(newest_of(communicator_, newest()));
}

void AsyncServer::begin_with(const Snapshot& snapshot) {
  server_ ? server_->begin_with(snapshot) : client_->begin_with(snapshot);
}

// Returns the account on the first server, which gets a part of every push as all servers do; otherwise "".
std::string AsyncServer::account() const {
  const bool tells = server_ && communicator_.rank() == server_rank;
  return tells ? "clients of the parameter server\n" + server_->table().to_text() : "";
}

}  // namespace plexaura
