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

// A rank whose weights the test moves in the place of a step: two trainables, a buffer and a frozen parameter of two
// elements each, of which the second is minus the first. All begin with 0.
class MovedRank {
 public:
  explicit MovedRank(Strategy& strategy, DType dtype = DType::float64);
  ~MovedRank();

  // Moves all to a number, and has the strategy do what it does behind the update.
  void step(const StepPlace& place, double to);
  // Goes on with another strategy, as those that are left where ranks were lost behind that step.
  void go_on(Strategy& next, const StepPlace& place);
  // In the place of steps: the work of a rank that serves.
  void serve();
  // The first element of the first trainable, of the buffer and of the frozen parameter.
  Numbers values() const;
  // Of both trainables.
  Numbers weights() const;

 private:
  struct Parts;
  Numbers read(const std::vector<std::string>& names) const;
  std::unique_ptr<Parts> parts_;
  StrategyParts strategy_;
};

using MakeStrategy = std::function<std::unique_ptr<Strategy>(Collective&)>;

// The values of rank 0, or of rank 1, behind each of some steps in which rank 0 goes to 8 and rank 1 to 16. Each has
// so many samples in a step.
std::vector<Numbers> values_behind(const MakeStrategy& make, const std::vector<StepPlace>& steps,
                                   const std::vector<std::int64_t>& samples = {4, 4}, int of_rank = 0,
                                   DType dtype = DType::float64);

// The same of both trainables, of rank 0.
std::vector<Numbers> weights_behind(const MakeStrategy& make, const std::vector<StepPlace>& steps);

// How the last of three ranks is lost, which go to 8, 16 and 24 in each step, with four samples each.
struct LossOfLast {
  std::vector<StepPlace> steps;        // of all three
  std::string_view call = {};          // in which it is lost, the last one; empty: behind the steps
  bool one_has_passed = false;         // rank 0 has passed that call, and the last rank was lost behind it
  std::vector<StepPlace> ahead = {};   // which rank 0 has made then, and rank 1 has not
  bool shown = false;                  // while others are looked at than those that train
  std::vector<StepPlace> behind = {};  // which the other two make later
};

// The values of the two that are left: when they go on, and behind each step that they make then.
std::array<std::vector<Numbers>, 2> values_without_last(const MakeStrategy& make, const LossOfLast& loss);

}  // namespace plexaura::testing
