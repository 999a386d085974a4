#pragma once

#include "distributed/communicator/communicator.h"

namespace plexaura {

// Sums of all types and several sizes, by sum() and in windows cut in several ways, against the plain sum in
// the order of sum_order.h; every bit must agree if the algorithm keeps it. Throws InternalError where one does not, on the rank that sees
// it. Collective.
void check_all_sums(Communicator& ranks);

}  // namespace plexaura
