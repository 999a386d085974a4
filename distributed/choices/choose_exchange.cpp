#include "distributed/choices/choose_exchange.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/base/clock.h"
#include "core/base/splitmix.h"
#include "distributed/communicator/time_calls.h"

namespace plexaura {
namespace {

constexpr std::string_view timing = "measuring in which buckets gradients cross";

constexpr std::int64_t first_call_bytes = std::int64_t{1} << 16;
constexpr std::int64_t most_call_bytes = std::int64_t{1} << 26;
constexpr double seconds_of_sum = 0.05;   // a sum that takes this long is large enough
constexpr double seconds_for_sums = 0.2;  // all sums of that size together take about this long
constexpr double seconds_for_others = 1;  // no further algorithm is measured after this time

constexpr std::array<std::int64_t, 4> smaller_buckets{8 << 20, 2 << 20, 512 << 10, 128 << 10};

// Returns the bytes of each bucket of gradients. The last bucket, with buffers and the tail, is left out: its size does
// not depend on `least_bytes`.
std::vector<std::int64_t> buckets_of(const Placement& placement, std::int64_t least_bytes) {
  std::vector<std::int64_t> bytes;
  for (const Bucket& bucket : make_buckets(placement, least_bytes))
    bytes.push_back(bucket.count * static_cast<std::int64_t>(size_of(bucket.dtype)));
  bytes.pop_back();
  return bytes;
}

// Keeps processors busy: its threads compute until it is destroyed.
class BusyThreads {
 public:
  // Starts `count` threads, or fewer if the system allows no more.
  explicit BusyThreads(int count) {
    try {
      for (int i = 0; i < count; ++i)
        threads_.emplace_back([this] {
          while (!ends_.load(std::memory_order_relaxed)) compute();
        });
    } catch (const std::system_error&) {
    }
  }
  ~BusyThreads() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  // Computes for a few microseconds.
  static void compute() {
    volatile std::uint64_t number = 1;
    for (int i = 0; i < 1000; ++i) number = splitmix_scatter(number);
  }

  std::atomic<bool> ends_ = false;
  std::vector<std::thread> threads_;
};

// Measures the algorithm that `ranks` uses now. During a backward pass, which occupies the cores, each call
// begins later. This delay is part of the latency, and not of the rate.
CallSpeed measure_sums(Communicator& ranks, SharedWindow& window, DType dtype,
                       const ExchangeQuestion& question) {
  const auto sum = [&](std::int64_t bytes) {
    ranks.sum_window(window, 0, dtype, bytes / static_cast<std::int64_t>(size_of(dtype)), timing);
  };
  CallSpeed speed = speed_of(ranks, sum,
                             {.first_bytes = first_call_bytes,
                              .most_bytes = static_cast<std::int64_t>(window.bytes()),
                              .seconds_of_call = seconds_of_sum,
                              .seconds_for_calls = seconds_for_sums},
                             timing);
  if (!question.overlaps) return speed;
  const BusyThreads busy(question.threads);
  speed.latency = latency_of(ranks, sum, timing);
  return speed;
}

// Returns the bytes of the largest bucket of any size to choose from, within 64 KiB to 64 MiB.
std::int64_t largest_call(const ExchangeQuestion& question, const Placement& placement) {
  std::int64_t largest = first_call_bytes;
  for (const std::int64_t least : question.bucket_bytes)
    largest = std::max(largest, std::ranges::max(buckets_of(placement, least)));
  return std::min(largest, most_call_bytes);
}

}  // namespace

std::vector<ExchangeWay> ExchangeQuestion::ways() const {
  std::vector<ExchangeWay> all;
  for (const std::string& algorithm : algorithms)
    for (const std::int64_t bytes : bucket_bytes) all.push_back({algorithm, bytes});
  return all;
}

std::vector<std::int64_t> bucket_sizes_from(std::int64_t first) {
  std::vector<std::int64_t> sizes{first};
  sizes.insert(sizes.end(), smaller_buckets.begin(), smaller_buckets.end());
  return sizes;
}

ExchangeWay choose_exchange(const ExchangeQuestion& question, const Placement& placement,
                            Communicator& ranks) {
  const double begin = seconds_now();
  const auto size = static_cast<std::size_t>(largest_call(question, placement));
  SharedWindow window = ranks.allocate_shared(size, timing);
  std::vector<ExchangeWay> ways;
  for (const std::string& algorithm : question.algorithms) {
    const double spent = time_of(
        ranks, 1, [&] { return seconds_now() - begin; }, timing);
    if (!ways.empty() && spent > seconds_for_others) break;
    ranks.choose_algorithm(algorithm);
    const CallSpeed calls = measure_sums(ranks, window, placement.types.gradients, question);
    for (const std::int64_t least : question.bucket_bytes)
      ways.push_back(
          {algorithm, least, expected_seconds(buckets_of(placement, least), calls, question.overlaps)});
  }
  // Ranks with different processors may round the estimates differently, so rank 0 decides.
  const std::string mine = std::to_string(choose(ways));
  ExchangeWay chosen = ways[std::stoull(ranks.gather_all(mine, timing).front())];
  ranks.choose_algorithm(chosen.algorithm);
  return chosen;
}

}  // namespace plexaura
