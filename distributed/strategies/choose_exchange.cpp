#include "distributed/strategies/choose_exchange.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/clock.h"
#include "distributed/time_calls.h"

namespace plexaura {
namespace {

constexpr std::string_view timing = "measuring in which buckets gradients cross";

constexpr std::array<std::int64_t, 4> smaller_buckets{8 << 20, 2 << 20, 512 << 10, 128 << 10};

// Bytes of each, without changes of buffers and the tail, which are the same whatever the size.
std::vector<std::int64_t> buckets_of(const Placement& placement, std::int64_t least_bytes) {
  std::vector<std::int64_t> bytes;
  for (const Bucket& bucket : make_buckets(placement, least_bytes))
    bytes.push_back(bucket.count * static_cast<std::int64_t>(size_of(bucket.dtype)));
  bytes.pop_back();
  return bytes;
}

class CallTimer {
 public:
  CallTimer(Communicator& ranks, DType dtype, std::int64_t most_bytes)
      : ranks_(ranks),
        dtype_(dtype),
        most_bytes_(std::clamp(most_bytes, first_call_bytes, most_call_bytes)),
        window_(ranks.allocate_shared(static_cast<std::size_t>(most_bytes_), timing)) {}

  // By the algorithm that is chosen.
  CallTimes measure(double seconds) {
    time(1, least_call_bytes);  // opens the connections
    CallTimes times;
    double left = seconds;
    times.add(least_call_bytes, time_size(least_call_bytes, left));
    std::int64_t bytes = first_call_bytes;
    while (true) {
      const double taken = time_size(bytes, left);
      times.add(bytes, taken);
      if (bytes == most_bytes_ || least_calls * growth * taken > left) return times;
      bytes = std::min(growth * bytes, most_bytes_);
    }
  }

 private:
  static constexpr std::int64_t least_call_bytes = 64;
  static constexpr std::int64_t first_call_bytes = std::int64_t{1} << 16;
  static constexpr std::int64_t most_call_bytes = std::int64_t{1} << 26;
  static constexpr std::int64_t growth = 4;       // from one size to the next
  static constexpr double enough_seconds = 0.05;  // for one size
  static constexpr int least_calls = 3;
  static constexpr int most_calls = 101;

  // Once where there is no time for more.
  double time_size(std::int64_t bytes, double& left) {
    const double once = time(1, bytes);
    left -= once;
    if (least_calls * once > left) return once;
    const int calls =
        std::clamp(static_cast<int>(enough_seconds / std::max(once, 1e-9)), least_calls, most_calls);
    const double taken = time(calls, bytes);
    left -= calls * taken;
    return taken;
  }

  double time(int calls, std::int64_t bytes) {
    return time_of(
        ranks_, calls, [&] { return seconds_of_call(bytes); }, timing);
  }

  // Goes on through the window, for gradients are not in a cache of the processor either.
  double seconds_of_call(std::int64_t bytes) {
    if (offset_ + bytes > most_bytes_) offset_ = 0;
    const double begin = seconds_now();
    ranks_.sum_window(window_, static_cast<std::size_t>(offset_), dtype_,
                      bytes / static_cast<std::int64_t>(size_of(dtype_)), timing);
    offset_ += bytes;
    return seconds_now() - begin;
  }

  Communicator& ranks_;
  DType dtype_;
  std::int64_t most_bytes_;
  SharedWindow window_;
  std::int64_t offset_ = 0;
};

}  // namespace

std::vector<std::int64_t> bucket_sizes_from(std::int64_t first) {
  std::vector<std::int64_t> sizes{first};
  sizes.insert(sizes.end(), smaller_buckets.begin(), smaller_buckets.end());
  return sizes;
}

ExchangeWay choose_exchange(const ExchangeQuestion& question, const Placement& placement,
                            Communicator& ranks) {
  std::int64_t largest = 0;
  for (const std::int64_t least : question.bucket_bytes)
    largest = std::max(largest, std::ranges::max(buckets_of(placement, least)));
  CallTimer timer(ranks, placement.types.gradients, largest);
  std::vector<ExchangeWay> ways;
  for (const std::string& algorithm : question.algorithms) {
    ranks.choose_algorithm(algorithm);
    const CallTimes calls = timer.measure(question.seconds / static_cast<double>(question.algorithms.size()));
    for (const std::int64_t least : question.bucket_bytes)
      ways.push_back(
          {algorithm, least, expected_seconds(buckets_of(placement, least), calls, question.overlaps)});
  }
  // Ranks of different processors may round differently.
  const std::size_t mine = choose_way(ways);
  ExchangeWay chosen = ways[std::stoull(ranks.gather_all(std::to_string(mine), timing).front())];
  ranks.choose_algorithm(chosen.algorithm);
  return chosen;
}

}  // namespace plexaura
