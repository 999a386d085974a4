#include "distributed/sums/pace_choice.h"

#include <bit>

#include "distributed/sums/sum_algorithm.h"

namespace plexaura {
namespace {

constexpr std::array<Pace, 2> paces{
    {{std::int64_t{16} << 10, std::int64_t{16} << 10}, {message_bytes, 8 * message_bytes}}};
constexpr std::int64_t calls_between_trials = 500;
constexpr double weight_of_newest = 0.25;

}  // namespace

std::uint8_t PaceChoice::next(std::int64_t bytes) const {
  const Calls& calls = calls_[size_class(bytes)];
  if (calls.count < static_cast<std::int64_t>(paces.size())) return static_cast<std::uint8_t>(calls.count);
  const bool is_trial = calls.count % calls_between_trials == 0;
  return (calls.seconds[1] < calls.seconds[0]) != is_trial ? 1 : 0;
}

void PaceChoice::took(std::int64_t bytes, std::uint8_t pace, double seconds_of_half) {
  Calls& calls = calls_[size_class(bytes)];
  double& mean = calls.seconds[pace];
  mean = mean > 0 ? mean + weight_of_newest * (seconds_of_half - mean) : seconds_of_half;
  ++calls.count;
}

const Pace& PaceChoice::pace(std::uint8_t number) { return paces[number]; }

std::size_t PaceChoice::size_class(std::int64_t bytes) {
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(bytes)) % 64);
}

}  // namespace plexaura
