#include "training/loop/observers.h"

namespace plexaura {

TrainingObserver::~TrainingObserver() = default;

template <class Call>
std::exception_ptr Observers::first_failure(const Call& call) {
  std::exception_ptr first;
  for (TrainingObserver& observer : observers_) try {
      call(observer);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  return first;
}

void Observers::step(const StepRecord& record, std::int64_t steps_in_epoch) {
  if (failure_) return;
  failure_ = first_failure([&](TrainingObserver& observer) { observer.step(record, steps_in_epoch); });
}

void Observers::epoch(const EpochRecord& record) {
  if (const auto failure = first_failure([&](TrainingObserver& observer) { observer.epoch(record); }))
    std::rethrow_exception(failure);
}

}  // namespace plexaura
