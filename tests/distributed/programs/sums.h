#pragma once

#include "distributed/communicator/communicator.h"

namespace plexaura {

// Checks sums of all types and several sizes, by sum() and in windows that are cut in several ways, against
// the plain sum in the order of sum_order.h. Every bit must agree if the algorithm keeps the order.
// Collective. Throws InternalError on the rank that finds a difference.
void check_all_sums(Communicator& ranks);

}  // namespace plexaura
