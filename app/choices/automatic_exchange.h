#pragma once

#include <vector>

#include "app/choices/rank_choice.h"
#include "app/options/run_config.h"
#include "core/params/parameter_store.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// True if sums of gradients have the bits that Communicator::keeps_order() promises.
bool keeps_order(const Communicator& exchange, const RunOptions& options);

// True if a run with gradients in other buckets may round differently. The norm of the gradients, by which
// they are clipped or a step is skipped, is added up bucket by bucket. The results of some methods of
// compression, and of sums in another order, depend on which gradients are in one bucket.
bool buckets_change_bits(const Communicator& exchange, const RunOptions& options);

// Chooses the algorithm and the size of buckets of `allreduce` by measurements, as far as the file leaves
// them open and they do not change the bits of the weights. Chooses nothing for gradients that are compressed
// or smaller than 1 MiB, and if training.tuning is `off`. If all ranks find the same choice in the user's
// cache, they take it and measure nothing. `exchange`: the communicator of the ranks that exchange gradients;
// it sums by the chosen algorithm afterwards. All of them have the same options afterwards. Collective.
ChoiceReport decide_exchange(Communicator& exchange, const std::vector<ParameterSpec>& parameters,
                             RunOptions& options);

}  // namespace plexaura
