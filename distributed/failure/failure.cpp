#include "distributed/failure/failure.h"

#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <thread>

#include "core/ranks/collective.h"

namespace plexaura {

void throw_quietly(int reporting_rank, const std::string& text) {
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  throw Remote<DeviceError>(reporting_rank, text);
}

std::string list_ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  return fmt::format("ranks {} and {}", fmt::join(std::span(ranks).first(ranks.size() - 1), ", "),
                     ranks.back());
}

}  // namespace plexaura
