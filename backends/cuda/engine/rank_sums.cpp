#include "backends/cuda/engine/rank_sums.h"

#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace plexaura::cuda {

namespace {

constexpr std::chrono::milliseconds between_looks{1};

}  // namespace

RankSums::RankSums(std::shared_ptr<Device> device, std::unique_ptr<vendor::Sums> library,
                   double deadline_seconds)
    : device_(std::move(device)),
      library_(std::move(library)),
      deadline_(deadline_seconds),
      thread_([this] { watch(); }) {}

RankSums::~RankSums() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RankSums::sum(DType dtype, Address data, std::int64_t count) {
  device_->capture.forbid("summing over ranks");
  check();
  Sum sum = take_sum();
  runtime::Stream* const stream = device_->copy.get();
  runtime::record(sum.reached.get(), stream);
  library_->sum(stream, dtype, data, count);
  runtime::record(sum.done.get(), stream);
  {
    const std::lock_guard lock(mutex_);
    under_way_.push_back(std::move(sum));
  }
  changed_.notify_all();
}

RankSums::Sum RankSums::take_sum() {
  const std::lock_guard lock(mutex_);
  if (ended_.empty()) return {EventHandle(runtime::make_event()), EventHandle(runtime::make_event())};
  Sum sum = std::move(ended_.back());
  ended_.pop_back();
  sum.since = std::nullopt;
  return sum;
}

void RankSums::check() const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw DeviceError(failure_);
}

void RankSums::give_up() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = "the sums over ranks were given up";
    ends_ = true;
  }
  changed_.notify_all();
  library_->give_up();
}

// Watches the sums. Sets the failure before it gives up the sums, so that threads that are then woken find
// the failure.
void RankSums::watch() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !under_way_.empty(); });
    if (ends_) return;
    try {
      if (has_ended(under_way_.front())) {
        ended_.push_back(std::move(under_way_.front()));
        under_way_.pop_front();
      } else {
        changed_.wait_for(lock, between_looks, [this] { return ends_; });
      }
    } catch (const std::exception& error) {
      failure_ = error.what();
      library_->give_up();
      return;
    }
  }
}

bool RankSums::has_ended(Sum& sum) {
  if (runtime::passed(sum.done.get())) return true;
  if (const std::string failure = library_->failure(); !failure.empty()) throw DeviceError(failure);
  if (!sum.since && runtime::passed(sum.reached.get())) sum.since = seconds_now();
  check_time(sum);
  return false;
}

void RankSums::check_time(const Sum& sum) const {
  if (sum.since && seconds_now() - *sum.since > deadline_)
    throw DeviceError(fmt::format(
        "a sum over ranks did not end within {:.3g} s of its begin: another rank is gone, or has stopped",
        deadline_));
}

}  // namespace plexaura::cuda
