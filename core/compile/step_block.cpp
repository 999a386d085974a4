#include "core/compile/step_block.h"

#include <array>
#include <cstring>

namespace plexaura {

namespace {
constexpr std::size_t scalars = 8;  // number of scalars: the members of StepScalar except `random`
constexpr std::size_t float32_at = scalars * sizeof(double);
constexpr std::size_t random_at = 96;
static_assert(float32_at + scalars * sizeof(float) <= random_at);
static_assert(random_at + 3 * sizeof(std::int64_t) <= step_block_bytes);
}  // namespace

std::size_t step_block_offset(StepScalar scalar, DType dtype) {
  const auto index = static_cast<std::size_t>(scalar);
  if (scalar == StepScalar::random) return random_at;
  return dtype == DType::float64 ? index * sizeof(double) : float32_at + index * sizeof(float);
}

void write_step_block(const StepBlock& block, std::byte* slot) {
  const std::array<double, scalars> wide{block.gradient_seed, block.share, block.samples, block.learning_rate,
                                         block.step,          block.stop,  block.failed,  block.loss_scale};
  std::array<float, scalars> narrow{};
  for (std::size_t i = 0; i < scalars; ++i) narrow[i] = static_cast<float>(wide[i]);
  const std::array<std::int64_t, 3> random{block.seed, static_cast<std::int64_t>(block.step),
                                           block.first_sample};
  std::memcpy(slot, wide.data(), sizeof wide);
  std::memcpy(slot + float32_at, narrow.data(), sizeof narrow);
  std::memcpy(slot + random_at, random.data(), sizeof random);
}

}  // namespace plexaura
