#include "training/on_rank_0.h"

#include <chrono>
#include <cstdint>
#include <future>

namespace plexaura {

void on_rank_0(Collective& ranks, std::string_view what, const std::function<void()>& work) {
  if (ranks.size() == 1) return work();
  std::future<void> done;
  if (ranks.rank() == 0) done = std::async(std::launch::async | std::launch::deferred, work);
  std::int64_t at_work = 1;
  while (at_work > 0) {
    constexpr std::chrono::seconds pause(1);
    at_work = done.valid() && done.wait_for(pause) == std::future_status::timeout ? 1 : 0;
    ranks.sum(DType::int64, reinterpret_cast<std::byte*>(&at_work), 1, what);
  }
  together(ranks, what, [&] {
    if (done.valid()) done.get();
  });
}

}  // namespace plexaura
