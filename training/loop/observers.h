#pragma once

#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "training/loop/trainer_options.h"

namespace plexaura {

// The observers of a run. If one of them throws, the others still get the same record.
class Observers {
 public:
  using List = std::vector<std::reference_wrapper<TrainingObserver>>;

  void set(List observers) { observers_ = std::move(observers); }
  // Calls step() of all observers, and keeps the first exception. Once it has kept one, it does nothing.
  void step(const StepRecord& record, std::int64_t steps_in_epoch);
  // Calls epoch() of all observers, then throws the first exception, if there was one.
  void epoch(const EpochRecord& record);
  // Returns the exception that step() has kept, and forgets it. Null if there is none.
  std::exception_ptr take_failure() { return std::exchange(failure_, nullptr); }
  // Throws the exception that step() has kept, if there is one, and keeps it.
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
