#include "distributed/failure/failure.h"

#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <thread>

namespace plexaura {

void let_the_other_speak() { std::this_thread::sleep_for(std::chrono::milliseconds(500)); }

void throw_quietly(int reporting_rank, const DeviceError& error) {
  let_the_other_speak();
  throw Remote<DeviceError>(reporting_rank, error.what());
}

void throw_quietly(int reporting_rank, const UserError& error) {
  let_the_other_speak();
  throw Remote<UserError>(reporting_rank, error.what());
}

void throw_quietly(int reporting_rank, const RankLost& error) {
  let_the_other_speak();
  throw Remote<RankLost>(reporting_rank, error);
}

std::string list_ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  return fmt::format("ranks {} and {}", fmt::join(std::span(ranks).first(ranks.size() - 1), ", "),
                     ranks.back());
}

}  // namespace plexaura
