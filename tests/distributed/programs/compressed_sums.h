#pragma once

#include "distributed/communicator/communicator.h"

namespace plexaura {

// Exchanges a bucket with each compression. Throws InternalError where ranks do not all have the same sums, where something
// is lost, or where a rank owes what another one of its host should owe. Collective.
void check_compressed_sums(Communicator& ranks);

}  // namespace plexaura
