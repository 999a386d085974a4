#pragma once

#include "core/exchange/weights_immigration.h"

namespace plexaura {

// Records the names of the tensors in each bucket as events, for users whose rank hangs in 'bucket 3 of step
// 17'.
void report_buckets(const WeightsImmigration& border);

}  // namespace plexaura
