#include "training/on_rank_0.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <future>

namespace plexaura {

namespace {

// Until nobody is at work any more.
void beat(Collective& ranks, std::string_view what, const std::future<void>& done) {
  constexpr std::chrono::milliseconds pause(250);
  for (std::int64_t at_work = 1; at_work > 0;) {
    at_work = done.wait_for(pause) == std::future_status::timeout ? 1 : 0;
    ranks.sum(DType::int64, reinterpret_cast<std::byte*>(&at_work), 1, what);
  }
}

}  // namespace

void on_some_ranks(Collective& ranks, bool works, std::string_view what, const std::function<void()>& work) {
  if (ranks.size() == 1) {
    const PhaseMark mark(what);
    if (works) work();
    return;
  }
  std::promise<void> end;
  const std::future<void> done = end.get_future();
  if (!works) {
    end.set_value();
    beat(ranks, what, done);
    return agree_on_error(ranks, nullptr, what);
  }
  // Where there is no thread to be had, the others wait no longer than ever.
  std::future<void> beats =
      std::async(std::launch::async | std::launch::deferred, [&] { beat(ranks, what, done); });
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
  end.set_value();
  try {
    beats.get();
  } catch (...) {
    // The work may have heard of the same loss: then the error of this thread may be the one that speaks.
    if (!speaks_itself) throw;
  }
  agree_on_error(ranks, failure, what);
}

void on_rank_0(Collective& ranks, std::string_view what, const std::function<void()>& work) {
  on_some_ranks(ranks, ranks.rank() == 0, what, work);
}

}  // namespace plexaura
