#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"

namespace plexaura::testing {

using Numbers = std::vector<double>;

// A rank whose weights are set by the test instead of a training step. It has two trainable parameters, a
// buffer and a frozen parameter of two elements each. The second element is minus the first. All begin with
// 0.
class MovedRank {
 public:
  explicit MovedRank(Strategy& strategy, DType dtype = DType::float64);
  ~MovedRank();

  // Sets all weights to a number, and lets the strategy do what it does after the update.
  void step(const StepPlace& place, double to);
  // Continues with another strategy, as ranks do after others were lost after that step.
  void proceed(Strategy& next, const StepPlace& place);
  // Does the work of a serving rank, instead of steps.
  void serve();
  // Returns the first elements of the first trainable parameter, of the buffer and of the frozen parameter.
  Numbers values() const;
  // Returns the first elements of both trainable parameters.
  Numbers weights() const;

 private:
  struct Parts;
  Numbers read(const std::vector<std::string>& names) const;
  std::unique_ptr<Parts> parts_;
  StrategyParts strategy_;
};

using MakeStrategy = std::function<std::unique_ptr<Strategy>(Collective&)>;

// Returns the values of rank 0 or rank 1 after each step. In a step rank 0 moves to 8 and rank 1 to 16, with
// the given numbers of samples.
std::vector<Numbers> values_behind(const MakeStrategy& make, const std::vector<StepPlace>& steps,
                                   const std::vector<std::int64_t>& samples = {4, 4}, int of_rank = 0,
                                   DType dtype = DType::float64);

// The same for both trainable parameters of rank 0.
std::vector<Numbers> weights_behind(const MakeStrategy& make, const std::vector<StepPlace>& steps);

// Describes how the last of three ranks is lost. In each step the ranks move to 8, 16 and 24, with four
// samples each.
struct LossOfLast {
  std::vector<StepPlace> steps;        // steps that all three ranks make
  std::string_view call = {};          // the last rank is lost in this call; empty: after the steps
  bool one_has_passed = false;         // rank 0 completes that call before the last rank is lost
  std::vector<StepPlace> ahead = {};   // further steps that rank 0 makes, but rank 1 does not
  bool shown = false;                  // the rank is lost while the strategy shows other weights
  std::vector<StepPlace> behind = {};  // steps that the other two make later
};

// Returns the values of the two remaining ranks: when they continue, and after each step that they make then.
std::array<std::vector<Numbers>, 2> values_without_last(const MakeStrategy& make, const LossOfLast& loss);

}  // namespace plexaura::testing
