#pragma once

#include <atomic>
#include <functional>
#include <string_view>

#include "core/exchange/collective.h"

namespace plexaura {

// How far work has come for which others wait. It may hang where it has made no progress for longer than its patience.
// Any thread.
class WorkProgress {
 public:
  explicit WorkProgress(double patience_seconds);

  void made() noexcept;
  // From now on the work waits for another rank, which shows progress of its own; until made().
  void await_others() noexcept;
  bool has_stalled() const noexcept;

 private:
  double patience_;
  std::atomic<double> last_;
};

// Work of some ranks, or of all, those that say so, for which the others wait: all leave as together() does. Those at
// work tell the others so, with a pause of a quarter of a second between two calls, so that work may take longer than
// ranks wait for each other. The work runs on the calling thread and must not call `ranks`: a thread of its own does so
// meanwhile. With `progress`, a rank whose work has stalled says nothing until it goes on: after the deadline of
// `ranks` it is taken for lost. Without, work that never ends keeps the others waiting for ever.
void on_some_ranks(Collective& ranks, bool works, std::string_view what, const std::function<void()>& work,
                   const WorkProgress* progress = nullptr);

// The same where rank 0 alone works.
void on_rank_0(Collective& ranks, std::string_view what, const std::function<void()>& work);

}  // namespace plexaura
