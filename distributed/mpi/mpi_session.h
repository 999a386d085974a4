#pragma once

#include <atomic>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/failure/watchdog.h"
#include "distributed/mpi/ulfm.h"

namespace plexaura {

// MPI between MPI_Init and MPI_Finalize. Shared by all transports.
class MpiSession {
 public:
  explicit MpiSession(double deadline_seconds);
  // Does not close MPI where that could wait for a lost rank: the process then just ends, which mpirun takes
  // as a failure.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Runs an MPI call that blocks until all ranks have come, and gives what it returns; the watchdog ends the process
  // when it never returns.
  template <class F>
  int blocking(const char* name, F&& call) {
    return blocking(name, call, deadline_);
  }
  template <class F>
  int blocking(const char* name, F&& call, double deadline_seconds) {
    const Watchdog::Guard guard(watchdog_, name, deadline_seconds);
    return call();
  }

  double deadline() const { return deadline_; }

  // Is called when a call blocks for longer than the deadline: see Watchdog::set_rescue().
  void when_stuck(const Watchdog::Rescue& rescue) { watchdog_.set_rescue(rescue); }

  // Throws DeviceError with MPI's own words unless `code` is MPI_SUCCESS.
  static void check(int code, const char* name);

  // Memory that MPI may still read or write.
  void keep(std::shared_ptr<const void> memory) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(memory));
  }

  // Empty where the library does not outlive ranks.
  const std::optional<Ulfm>& ulfm() const { return ulfm_; }

  void abandon() noexcept { abandoned_ = true; }
  // The library has made a communicator of the ranks that live, so that MPI can be closed again.
  void go_on() noexcept { abandoned_ = false; }
  bool abandoned() const noexcept { return abandoned_; }

 private:
  Watchdog watchdog_;
  double deadline_;
  std::optional<Ulfm> ulfm_;
  std::atomic<bool> abandoned_ = false;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> kept_;
  bool is_owner_ = false;  // not where the program had started MPI itself
};

}  // namespace plexaura
