#include "training/ranks/on_rank_0.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <limits>
#include <system_error>
#include <thread>

#include "core/base/clock.h"
#include "core/base/events.h"

namespace plexaura {

namespace {

bool is_done(const std::future<void>& work) {
  constexpr std::chrono::milliseconds pause(250);
  return work.wait_for(pause) == std::future_status::ready;
}

// Repeats a small sum until no rank works any more. These calls are frequent and of no interest to observers,
// so they are not recorded as events.
void beat(Collective& ranks, std::string_view what, const std::future<void>& work,
          const WorkProgress* progress) {
  const EventSilence silence;
  for (std::int64_t at_work = 1; at_work > 0;) {
    at_work = is_done(work) ? 0 : 1;
    while (at_work > 0 && progress != nullptr && progress->has_stalled()) at_work = is_done(work) ? 0 : 1;
    ranks.sum(DType::int64, reinterpret_cast<std::byte*>(&at_work), 1, what);
  }
}

// Calls beat() on a thread. If no thread can be started, end() calls it: then the other ranks wait for the
// work only as long as for any other call.
class Beats {
 public:
  Beats(Collective& ranks, std::string_view what, const WorkProgress* progress)
      : ranks_(ranks), what_(what), progress_(progress) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
    }
  }
  Beats(const Beats&) = delete;
  Beats& operator=(const Beats&) = delete;

  // Called when the work of this rank has ended. Waits for the work of the other ranks. Rethrows an error of
  // a call.
  void end() {
    const EventSpan span(EventKind::wait, what_);
    work_.set_value();
    if (thread_.joinable())
      thread_.join();
    else
      run();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run() noexcept {
    try {
      beat(ranks_, what_, done_, progress_);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  Collective& ranks_;
  std::string_view what_;
  const WorkProgress* progress_;
  std::promise<void> work_;
  std::future<void> done_ = work_.get_future();
  std::exception_ptr failure_;
  std::thread thread_;
};

void wait_for_work(Collective& ranks, std::string_view what) {
  const EventSpan span(EventKind::wait, what);
  std::promise<void> none;
  none.set_value();
  beat(ranks, what, none.get_future(), nullptr);
}

}  // namespace

WorkProgress::WorkProgress(double patience_seconds) : patience_(patience_seconds), last_(seconds_now()) {}

void WorkProgress::made() noexcept { last_ = seconds_now(); }

void WorkProgress::await_others() noexcept { last_ = std::numeric_limits<double>::infinity(); }

bool WorkProgress::has_stalled() const noexcept { return seconds_now() - last_ > patience_; }

void on_some_ranks(Collective& ranks, bool works, std::string_view what, const std::function<void()>& work,
                   const WorkProgress* progress) {
  if (ranks.size() == 1) {
    const PhaseMark mark(what);
    if (works) work();
    return;
  }
  if (!works) {
    wait_for_work(ranks, what);
    return agree_on_error(ranks, nullptr, what);
  }
  Beats beats(ranks, what, progress);
  std::exception_ptr failure;
  bool speaks_itself = false;
  try {
    const PhaseMark mark(what);
    work();
  } catch (const RemoteError&) {
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
    speaks_itself = true;
  }
  try {
    beats.end();
  } catch (...) {
    // The work may have failed because a rank was lost, as the call has. Then the error of the work may be
    // the one that this rank prints.
    if (!speaks_itself) throw;
  }
  agree_on_error(ranks, failure, what);
}

void on_rank_0(Collective& ranks, std::string_view what, const std::function<void()>& work) {
  on_some_ranks(ranks, ranks.rank() == 0, what, work);
}

}  // namespace plexaura
