#include "training/ranks/tail_sums.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

constexpr double most_of_deadline = 0.1;
constexpr double most_steps = 1000;
constexpr std::int64_t most_times = 10;  // largest factor of the number of steps while the strategy exchanges

}  // namespace

void TailSums::keep(const StepMetrics& mine, const std::exception_ptr& failure) {
  kept_.push_back(mine);
  if (failure && !failure_) failure_ = failure;
}

bool TailSums::is_due(bool is_busy) const {
  return std::ssize(kept_) >= steps_ * (is_busy && seconds_ > 0 ? most_times : 1);
}

std::span<const StepMetrics> TailSums::add_up(bool asks_all, std::string_view what) {
  slots_.clear();
  for (const StepMetrics& mine : kept_) std::ranges::copy(tail_of(mine), std::back_inserter(slots_));
  // The sum of whole microseconds is the same on all ranks, in whatever order they are added.
  slots_.push_back(std::round(1e6 * (seconds_now() - begin_)));
  ranks_.sum(DType::float64, reinterpret_cast<std::byte*>(slots_.data()), std::ssize(slots_), what);
  sums_.clear();
  bool failed = false;
  StepTail tail;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    std::copy_n(slots_.begin() + static_cast<std::ptrdiff_t>(i * tail.size()), tail.size(), tail.begin());
    failed |= sums_.emplace_back(metrics_of(tail, kept_[i].weight.has_value())).failed;
  }
  if (failed || asks_all) agree_on_error(ranks_, std::exchange(failure_, nullptr), what);
  if (failed) throw InternalError(fmt::format("{}: a rank has failed and gives no reason", what));
  adapt(1e-6 * slots_.back() / ranks_.size());
  return sums_;
}

// Sets the number of steps between two sums. `seconds` is the time of the steps that were summed, as a mean
// over the ranks. If the ranks have validated meanwhile, that time is included, and the next sum comes
// sooner.
void TailSums::adapt(double seconds) {
  const double between = std::min(seconds_, most_of_deadline * ranks_.deadline_seconds());
  const double of_step = std::max(seconds / static_cast<double>(kept_.size()), 1e-9);
  steps_ = static_cast<std::int64_t>(std::clamp(between / of_step, 1.0, most_steps));
  kept_.clear();
  begin_ = seconds_now();
}

}  // namespace plexaura
