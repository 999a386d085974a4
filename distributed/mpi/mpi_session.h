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

// MPI from MPI_Init to MPI_Finalize. All transports of a process share one object.
class MpiSession {
 public:
  explicit MpiSession(double deadline_seconds);
  // Closes MPI if this object has started it, unless that could wait for a lost rank. Then the process ends
  // without MPI_Finalize, which mpirun treats as a failure.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Runs an MPI call that blocks until all ranks have come, and returns its result. If it does not return
  // within the deadline, the watchdog ends the process.
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

  // Sets a function that is called if an MPI call blocks for longer than the deadline: see
  // Watchdog::set_rescue().
  void when_stuck(const Watchdog::Rescue& rescue) { watchdog_.set_rescue(rescue); }

  // Throws DeviceError with the text of MPI unless `code` is MPI_SUCCESS.
  static void check(int code, const char* name);

  // Keeps memory alive that MPI may still read or write.
  void keep(std::shared_ptr<const void> memory) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(memory));
  }

  // Returns the functions that survive the death of ranks; empty if they are missing or not switched on.
  const std::optional<Ulfm>& ulfm() const { return ulfm_; }

  void abandon() noexcept { abandoned_ = true; }
  // Called after the library has made a communicator of the ranks that live, so that MPI can be closed
  // normally again.
  void proceed() noexcept { abandoned_ = false; }
  bool abandoned() const noexcept { return abandoned_; }

 private:
  Watchdog watchdog_;
  double deadline_;
  std::optional<Ulfm> ulfm_;
  std::atomic<bool> abandoned_ = false;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> kept_;
  bool is_owner_ = false;  // true if this object has started MPI, and not the program
};

}  // namespace plexaura
