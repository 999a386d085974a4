#pragma once

#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "training/loop/trainer_options.h"

namespace plexaura {

// The observers of a run. Each gets every record, also if another one throws.
class Observers {
 public:
  using List = std::vector<std::reference_wrapper<TrainingObserver>>;

  void set(List observers) { observers_ = std::move(observers); }
  // Keeps the first failure. While it is kept, observers hear of no other step.
  void step(const StepRecord& record, std::int64_t steps_in_epoch);
  // Throws the first failure.
  void epoch(const EpochRecord& record);
  // The failure that step() has kept, once; null: none.
  std::exception_ptr take_failure() { return std::exchange(failure_, nullptr); }
  // Throws it, and keeps it.
  void check() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  template <class Call>
  std::exception_ptr first_failure(const Call& call);

  List observers_;
  std::exception_ptr failure_;
};

}  // namespace plexaura
