#pragma once

#include "core/exchange/weights_immigration.h"

namespace plexaura {

// Tells which tensors travel in each bucket, for whoever learns that a rank has hung in 'bucket 3 of step 17'.
void tell_buckets(const WeightsImmigration& border);

}  // namespace plexaura
