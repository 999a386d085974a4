#pragma once

#include <vector>

#include "app/choices/told_choice.h"
#include "app/options/run_config.h"
#include "core/params/parameter_store.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// Whether sums of gradients have the bits that Communicator::keeps_order() promises.
bool keeps_order(const Communicator& exchange, const RunOptions& options);

// Whether a run with gradients in other buckets may round otherwise: their norm is added up bucket by bucket, as is whether a
// number of them is infinite; and some methods of compression, and sums of another order, depend on what crosses together.
bool buckets_change_bits(const Communicator& exchange, const RunOptions& options);

// Chooses the algorithm and the size of buckets of `allreduce` by measurements, as far as the file leaves that open, and so that
// the choice has no share in the bits of the weights: it stays as it is for gradients that are compressed or few, and with training.tuning `off`. What all
// ranks find in the user's cache, with the same value, is not measured again. `exchange`: of the ranks that exchange gradients,
// which sums by the choice afterwards. All of them together; their options are the same afterwards.
ToldChoice settle_exchange(Communicator& exchange, const std::vector<ParameterSpec>& parameters,
                           RunOptions& options);

}  // namespace plexaura
