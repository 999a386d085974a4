#include "distributed/sums/pace_choice.h"

#include <algorithm>
#include <bit>

#include "distributed/node/reduce.h"
#include "distributed/sums/sum_algorithm.h"

namespace plexaura {
namespace {

constexpr std::int64_t short_bytes = std::int64_t{16} << 10;
constexpr std::int64_t calls_between_trials = 500;
constexpr double weight_of_newest = 0.25;

}  // namespace

const std::array<Pace, PaceChoice::pace_count> PaceChoice::paces{
    {{short_bytes, short_bytes}, {message_bytes, 8 * message_bytes}, {short_bytes, 4 * short_bytes}}};

std::uint8_t PaceChoice::next(const CallSignature& call) const {
  const Calls& calls = calls_[size_class(call)];
  if (calls.count < pace_count) return static_cast<std::uint8_t>(calls.count);
  if (calls.count % calls_between_trials == 0)
    return static_cast<std::uint8_t>(calls.count / calls_between_trials % pace_count);
  return static_cast<std::uint8_t>(std::ranges::min_element(calls.seconds) - calls.seconds.begin());
}

// Updates the mean time of a pace. The mean follows longer times slowly and shorter times at once, so that
// one disturbed call counts little.
void PaceChoice::took(const CallSignature& call, double seconds_of_half) {
  Calls& calls = calls_[size_class(call)];
  double& mean = calls.seconds[call.pace];
  const bool is_less = mean <= 0 || seconds_of_half < mean;
  mean = is_less ? seconds_of_half : mean + weight_of_newest * (seconds_of_half - mean);
  ++calls.count;
}

const Pace& PaceChoice::pace(std::uint8_t number) { return paces[number]; }

std::size_t PaceChoice::size_class(const CallSignature& call) {
  return static_cast<std::size_t>(std::bit_width(bytes_of(call.dtype, call.count)) % 64);
}

}  // namespace plexaura
