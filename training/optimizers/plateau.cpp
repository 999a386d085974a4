#include "training/optimizers/plateau.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

namespace {

bool is_better(const Plateau& plateau, double value, double best) {
  if (plateau.mode == Plateau::Mode::min) return value < best * (1 - plateau.threshold);
  return value > best * (1 + plateau.threshold);
}

// Above this number, a double cannot represent every whole number.
constexpr double largest_exact_count = 9007199254740992;

bool is_count(double number) {
  return number >= 0 && number <= largest_exact_count && number == std::floor(number);
}

}  // namespace

std::optional<Plateau::Mode> mode_by_name(std::string_view metric) {
  for (const std::string_view rising :
       {"accuracy", "r2", "f1", "exact_match", "psnr", "pixel_accuracy", "mean_iou"})
    if (metric.starts_with(rising)) return Plateau::max;
  for (const std::string_view falling : {"loss", "mae", "rmse", "perplexity"})
    if (metric == falling) return Plateau::min;
  return std::nullopt;
}

PlateauState observed(const Plateau& plateau, PlateauState state, double value) {
  if (!std::isfinite(value))
    throw UserError(
        fmt::format("the metric that lowers the learning rate at a plateau is {}; it must be a finite number",
                    std::isnan(value) ? "nan" : "infinite"));
  if (state.observations++ == 0 || is_better(plateau, value, state.best)) {
    state.best = value;
    state.bad = 0;
  } else {
    ++state.bad;
  }
  if (state.cooldown > 0) {
    --state.cooldown;
    state.bad = 0;
  }
  if (state.bad <= plateau.patience) return state;
  ++state.reductions;
  state.cooldown = plateau.cooldown;
  state.bad = 0;
  return state;
}

PlateauNumbers numbers_of(const PlateauState& state) {
  return {static_cast<double>(state.observations), state.best, static_cast<double>(state.bad),
          static_cast<double>(state.cooldown), static_cast<double>(state.reductions)};
}

PlateauState plateau_state(std::span<const double> numbers) {
  if (numbers.size() != std::tuple_size_v<PlateauNumbers>)
    throw UserError(
        fmt::format("has {} numbers instead of {}", numbers.size(), std::tuple_size_v<PlateauNumbers>));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (i == 1 ? !std::isfinite(numbers[i]) : !is_count(numbers[i]))
      throw UserError(fmt::format("has the number {}, which no run can reach", numbers[i]));
  return {static_cast<std::int64_t>(numbers[0]), numbers[1], static_cast<std::int64_t>(numbers[2]),
          static_cast<std::int64_t>(numbers[3]), static_cast<std::int64_t>(numbers[4])};
}

}  // namespace plexaura
