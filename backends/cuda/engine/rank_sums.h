#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/engine/device.h"
#include "backends/cuda/vendor/sums.h"
#include "core/device/device_sums.h"

namespace plexaura::cuda {

// Sums over ranks on the copy stream. A separate thread watches their progress, since a library's kernel that
// waits for a dead process would never end.
class RankSums final : public DeviceSums {
 public:
  RankSums(std::shared_ptr<Device> device, std::unique_ptr<vendor::Sums> library, double deadline_seconds);
  ~RankSums() override;
  RankSums(const RankSums&) = delete;
  RankSums& operator=(const RankSums&) = delete;

  void sum(DType dtype, Address data, std::int64_t count) override;
  void check() const override;
  void give_up() noexcept override;
  void end() noexcept override { library_->end(); }

 private:
  struct Sum {
    EventHandle reached;
    EventHandle done;
    // Seconds of the clock when the thread first saw that the stream had reached the sum.
    std::optional<double> since = {};
  };

  Sum take_sum();
  void watch();
  bool has_ended(Sum& sum);
  void check_time(const Sum& sum) const;

  std::shared_ptr<Device> device_;
  std::unique_ptr<vendor::Sums> library_;
  double deadline_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Sum> under_way_;
  std::vector<Sum> ended_;  // kept for reuse
  std::string failure_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace plexaura::cuda
