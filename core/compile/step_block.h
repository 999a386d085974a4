#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/export.h"
#include "core/graph/leaf.h"

namespace plexaura {

// The scalars of one run; see StepScalar. Any thread may call the functions below.
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

// The step block is at the start of a feed slot. It contains all scalars in float64, then all in float32, and
// then the three int64 of StepScalar::random.
inline constexpr std::size_t step_block_bytes = 128;
PLEXAURA_API std::size_t step_block_offset(StepScalar scalar, DType dtype);
PLEXAURA_API void write_step_block(const StepBlock& block, std::byte* slot);

}  // namespace plexaura
