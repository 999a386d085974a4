#pragma once

#include <memory>

#include "core/device/device_sums.h"
#include "tests/support/far_device/shared_sums.h"
#include "tests/support/far_device/streams.h"

namespace plexaura::far_device {

// A sum that is enqueued on a lane.
class SumJob final : public Job {
 public:
  SumJob(std::shared_ptr<SharedSums> shared, DType dtype, std::byte* place, std::int64_t count,
         double deadline_seconds)
      : shared_(std::move(shared)),
        dtype_(dtype),
        place_(place),
        count_(count),
        deadline_(deadline_seconds) {}
  void run() override;

 private:
  void await(bool (SharedSums::*what)() const, double begin) const;

  std::shared_ptr<SharedSums> shared_;
  DType dtype_;
  std::byte* place_;  // the real address
  std::int64_t count_;
  double deadline_;
};

}  // namespace plexaura::far_device
