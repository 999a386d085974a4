#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/params/weights_immigration.h"
#include "core/ranks/collective.h"

namespace plexaura::testing {

using Numbers = std::vector<double>;

// A rank whose weights the test moves in the place of a step: a trainable, a buffer and a frozen parameter of two
// elements each, of which the second is minus the first. All begin with 0.
class MovedRank {
 public:
  explicit MovedRank(Strategy& strategy);
  ~MovedRank();

  // Moves all to a number, and has the strategy do what it does behind the update.
  void step(const StepPlace& place, double to);
  // In the place of steps: the work of a rank that serves.
  void serve();
  // The first element of each.
  Numbers values() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  Strategy& strategy_;
};

// The values of rank 0, or of rank 1, behind each of some steps in which rank 0 goes to 8 and rank 1 to 16. Each has
// so many samples in a step.
std::vector<Numbers> values_behind(const std::function<std::unique_ptr<Strategy>(Collective&)>& make,
                                   const std::vector<StepPlace>& steps,
                                   const std::vector<std::int64_t>& samples = {4, 4}, int of_rank = 0);

}  // namespace plexaura::testing
