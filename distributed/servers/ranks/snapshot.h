#pragma once

#include <memory>
#include <string>

#include "distributed/communicator/communicator.h"
#include "distributed/communicator/mailbox.h"
#include "distributed/servers/client_table.h"
#include "distributed/servers/ranks/part_deal.h"

namespace plexaura {

// The state of a server at one moment, from which another server can continue: a letter with weights and an
// account. Null means that there is none. Each client keeps the last snapshot that it got. The account lists
// a part of the data as finished exactly if the weights contain the push of that part.
using Snapshot = std::shared_ptr<const Letter>;

// Returns the account, which follows the weights in a snapshot.
std::string account_of(const PartDeal& deal, const ClientTable& table);
// Reads the account of a snapshot. `weights` is the number of bytes of its weights.
void take_account(const Letter& snapshot, std::size_t weights, PartDeal& deal, ClientTable& table);

// Returns the newest snapshot of any rank, on all ranks. Collective.
Snapshot newest_of(Communicator& ranks, const Snapshot& mine);

}  // namespace plexaura
