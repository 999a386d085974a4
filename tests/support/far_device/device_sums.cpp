#include "tests/support/far_device/device_sums.h"

#include <chrono>
#include <fmt/format.h>
#include <thread>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace plexaura::far_device {

void SumJob::run() {
  const double begin = seconds_now();
  await(&SharedSums::have_read, begin);
  shared_->bring(place_, static_cast<std::size_t>(count_) * size_of(dtype_));
  await(&SharedSums::have_brought, begin);
  shared_->add(dtype_, place_, count_);
  if (shared_->has_given_up()) throw DeviceError("the sums over ranks were given up");
}

void SumJob::await(bool (SharedSums::*what)() const, double begin) const {
  while (!((*shared_).*what)()) {
    if (seconds_now() - begin > deadline_) {
      shared_->give_up();
      throw DeviceError(fmt::format("a sum over ranks did not end within {:.3g} s of its begin", deadline_));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace plexaura::far_device
