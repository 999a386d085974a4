#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/rank_lost.h"

namespace plexaura::testing {

// Ranks that are threads of one process, for tests of how a collective affects the code around it. Sums are
// added in the order of ranks. If a rank does not come within the deadline, has left, or makes another call,
// the call ends for all with a DeviceError, which one of them reports.
class ThreadRanks {
 public:
  explicit ThreadRanks(int size, double deadline_seconds = 30);

  // Runs the body once for each rank, in its own thread, and waits for all. Rethrows the error that is
  // reported (see speaks()); if there are several, that of the lowest rank.
  void run(const std::function<void(Collective&)>& body);

 private:
  class Member;
  // One rank's contribution to a call.
  struct Part {
    std::string call;  // the call's description, by which ranks are compared
    std::byte* data = nullptr;
    std::string text;
    std::vector<std::string>* texts = nullptr;
  };
  using Parts = std::vector<std::optional<Part>>;

  // Waits until all ranks have come. The last one does the work for all.
  void meet(int rank, Part part, const std::function<void(Parts&)>& work);
  void leave(int rank, bool in_error);
  // The caller must hold the lock.
  void check_failure() const;
  void check_nobody_left(int rank);
  void check_same_call(int rank, const Part& part);
  [[noreturn]] void fail(int rank, const std::string& text);

  int size_;
  double deadline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Parts parts_;
  int present_ = 0;
  std::uint64_t round_ = 0;
  std::string failure_;
  int failed_rank_ = -1;
  std::optional<RankLost> loss_;  // set if the failure is the loss of a rank
  std::vector<bool> left_;
};

}  // namespace plexaura::testing
