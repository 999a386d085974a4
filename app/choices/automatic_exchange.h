#pragma once

#include <vector>

#include "app/choices/rank_choice.h"
#include "app/options/run_config.h"
#include "core/params/parameter_store.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// True if sums of gradients have the bits that Communicator::keeps_order() promises.
bool keeps_order(const Communicator& exchange, const RunOptions& options);

// True if gradients that are divided into other buckets may be rounded differently. The norm of the
// gradients, which clips them or lets a step be skipped, is added up bucket by bucket. The results of some
// methods of compression, and of sums in another order, depend on which gradients are in one bucket.
bool buckets_change_bits(const Communicator& exchange, const RunOptions& options);

// Chooses the algorithm and the size of buckets of `allreduce` by measurements, if the YAML file does not set
// them and they do not change the bits of the weights. Chooses nothing for gradients that are compressed or
// smaller than 1 MiB, and if training.tuning is `off`. If training.tuning is `cached` and all ranks find the
// same choice in the user's cache, they take it and measure nothing. `exchange` is the communicator of the ranks
// that exchange gradients. Afterwards it sums by the chosen algorithm, and all of these ranks have the same options.
// Collective.
ChoiceReport decide_exchange(Communicator& exchange, const std::vector<ParameterSpec>& parameters,
                             RunOptions& options);

}  // namespace plexaura
