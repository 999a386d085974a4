#pragma once

#include <functional>

#include "core/params/parameter_store.h"
#include "training/optimizers/optimizer_spec.h"

// The averages of parameters that an optimizer keeps: see OptimizerSpec::ema.
namespace plexaura {

// The key in the metadata of a file of weights that holds averages. Its value is OptimizerSpec::ema.
inline constexpr const char* averaged_key = "training.ema";

// True if the store of this optimizer has averages. Before the first update, and while float16 has skipped every step, it
// has none.
bool has_averages(const ParameterStore& store, const OptimizerSpec& optimizer);

// Exchanges the trained parameters with their averages, so that the store holds the averages as its values, and the
// parameters as a state. The second call restores the store bit for bit. Does nothing if there are no averages. Buffers,
// such as the statistics of batch norm, are those of the last update in both cases, as in
// torch.optim.swa_utils.AveragedModel.
void exchange_averages(ParameterStore& store, const OptimizerSpec& optimizer);

// Calls `use` while the store holds the averages, if there are any. Restores the store afterwards, also if
// `use` throws.
void with_averages(ParameterStore& store, const OptimizerSpec& optimizer, const std::function<void()>& use);

}  // namespace plexaura
