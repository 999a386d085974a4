#include "distributed/failure.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <thread>

#include "core/device/collective.h"

namespace plexaura {

namespace {

// Open MPI asks the ranks to end after its time limit, kills them after another, and needs some time itself.
std::chrono::seconds seconds_to_end_a_job() {
  const char* limit = std::getenv("OMPI_MCA_odls_base_sigkill_timeout");
  const int seconds = limit != nullptr ? std::atoi(limit) : 1;
  return std::chrono::seconds(2 * std::max(seconds, 0) + 1);
}

}  // namespace

void throw_quietly(int reporting_rank, const std::string& text) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  throw Remote<DeviceError>(reporting_rank, text);
}

void wait_for_turn(int turn) { std::this_thread::sleep_for(seconds_to_end_a_job() * std::min(turn, 5)); }

void throw_in_turn(int turn, const std::string& text) {
  wait_for_turn(turn);
  throw DeviceError(text);
}

std::string list_ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  return fmt::format("ranks {} and {}", fmt::join(std::span(ranks).first(ranks.size() - 1), ", "),
                     ranks.back());
}

}  // namespace plexaura
