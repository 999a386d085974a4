#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/export.h"
#include "core/graph/leaf.h"

namespace plexaura {

// The numbers of one run. See StepScalar. A value; the functions below may be called by any thread.
struct StepBlock {
  double gradient_seed = 1;
  double share = 1;
  double samples = 0;
  double learning_rate = 0;
  double step = 1;
  double stop = 0;
  double failed = 0;
  double loss_scale = 1;
  std::int64_t seed = 0;
  std::int64_t first_sample = 0;
};

// How the step block lies at the start of the feed slot: every scalar in float64, then in float32, then the
// random triple.
inline constexpr std::size_t step_block_bytes = 128;
PLEXAURA_API std::size_t step_block_offset(StepScalar scalar, DType dtype);
PLEXAURA_API void write_step_block(const StepBlock& block, std::byte* slot);

}  // namespace plexaura
