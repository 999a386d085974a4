#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plexaura {

// Lowers the learning rate when a metric of validation has stopped improving, as
// torch.optim.lr_scheduler.ReduceLROnPlateau does with a relative threshold. After n reductions the rate is
// peak · factor^n, but at least `min_lr`. An observation is one value of the metric: a Trainer makes one after each
// epoch, and in a loop of your own Optimizer::observe() makes one; none counts during the warm-up of the schedule.
struct Plateau {
  enum class Mode : std::uint8_t { min, max };
  using enum Mode;  // Plateau::max

  double factor = 0.1;         // above 0 and below 1
  std::int64_t patience = 10;  // observations in a row without improvement that are tolerated; >= 0
  // A value is an improvement if it is below best · (1 − threshold), or with Mode::max above
  // best · (1 + threshold); from 0 to below 1.
  double threshold = 1e-4;
  std::int64_t cooldown = 0;  // observations after a reduction that do not count against the patience; >= 0
  double min_lr = 0;          // lowest learning rate, from 0 to the peak
  Mode mode = Mode::min;      // max: larger values are better, as for an accuracy
  std::string metric =
      // Name of the metric for a Trainer: "loss" is the validation loss, otherwise a metric of the model.
      "loss";
};

// Returns Mode::min if smaller values of the metric with this name are better, as for a loss, and Mode::max
// if larger values are better, as for an accuracy. Returns nothing for an unknown name. A name that begins
// with the name of a known metric of Mode::max has the same mode: "accuracy_top5".
std::optional<Plateau::Mode> mode_by_name(std::string_view metric);

// The state of a Plateau after some observations. It is part of a checkpoint, and equal on all ranks.
// Trivially copyable.
struct PlateauState {
  std::int64_t observations = 0;
  double best = 0;            // the best value so far; valid after the first observation
  std::int64_t bad = 0;       // values in a row without improvement; 0 after a reduction and in a cooldown
  std::int64_t cooldown = 0;  // number of the next observations that do not count against the patience
  std::int64_t reductions = 0;

  bool operator==(const PlateauState&) const = default;
};

// Returns the state after one more observation. Throws UserError if the value is not finite.
PlateauState observed(const Plateau& plateau, PlateauState state, double value);

// A PlateauState as numbers, for a checkpoint.
using PlateauNumbers = std::array<double, 5>;
PlateauNumbers numbers_of(const PlateauState& state);
// Returns the PlateauState for these numbers. Throws UserError if no run can reach them; the text continues a
// sentence about the numbers.
PlateauState plateau_state(std::span<const double> numbers);

}  // namespace plexaura
