#pragma once

#include "distributed/communicator/communicator.h"

namespace plexaura {

// Exchanges a bucket with each compression. Collective. Throws InternalError if not all ranks have the same
// sums, if something is lost, or if a rank owes what another rank of its host should owe.
void check_compressed_sums(Communicator& ranks);

}  // namespace plexaura
