#pragma once

#include <memory>
#include <string>

#include "distributed/communicator/communicator.h"
#include "distributed/communicator/mailbox.h"
#include "distributed/servers/client_table.h"
#include "distributed/servers/ranks/part_deal.h"

namespace plexaura {

// A server as it was at one moment: a letter with weights, by which another one goes on. Null: none. Each client keeps the last
// one that it got. The parts that are finished there are those whose pushes its weights have.
using Snapshot = std::shared_ptr<const Letter>;

// What follows the weights in it.
std::string account_of(const PartDeal& deal, const ClientTable& table);
// Of a snapshot with so many bytes of weights.
void take_account(const Letter& snapshot, std::size_t weights, PartDeal& deal, ClientTable& table);

// Collective: the newest that any of the ranks has.
Snapshot newest_of(Communicator& ranks, const Snapshot& mine);

}  // namespace plexaura
