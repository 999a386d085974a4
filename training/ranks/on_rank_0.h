#pragma once

#include <atomic>
#include <functional>
#include <string_view>

#include "core/exchange/collective.h"

namespace plexaura {

// A rank that makes no progress for so many deadlines is considered to hang.
constexpr double deadlines_without_progress = 10;

// The progress of work for which other ranks wait. Work may hang if it has made no progress for longer than
// its patience. Functions may be called from any thread.
class WorkProgress {
 public:
  explicit WorkProgress(double patience_seconds);

  void made() noexcept;
  // Records that from now until made() the work waits for another rank, which has its own WorkProgress.
  void await_others() noexcept;
  bool has_stalled() const noexcept;

 private:
  double patience_;
  std::atomic<double> last_;
};

// Collective. Runs `work` on the ranks that pass `works`; the other ranks wait. All return or throw as
// together() does. Four times a second, each working rank shows the others that it works, so that work may
// take longer than the deadline between ranks. The work runs on the calling thread and must not call `ranks`,
// which another thread uses meanwhile. With `progress`, a rank whose work has stalled shows nothing until it
// makes progress again: after the deadline of `ranks` it counts as lost. Without `progress`, the other ranks
// wait for ever if work never ends.
void on_some_ranks(Collective& ranks, bool works, std::string_view what, const std::function<void()>& work,
                   const WorkProgress* progress = nullptr);

// Runs `work` as on_some_ranks() does, on rank 0 only.
void on_rank_0(Collective& ranks, std::string_view what, const std::function<void()>& work);

}  // namespace plexaura
