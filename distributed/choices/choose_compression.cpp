#include "distributed/choices/choose_compression.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "distributed/communicator/time_calls.h"

namespace plexaura {
namespace {

constexpr std::string_view probing = "measuring what an exchange of gradients takes";

constexpr double seconds_of_round = 0.1;   // a call that takes this long is large enough
constexpr double seconds_for_calls = 0.4;  // all calls of one kind at the final size take about this long
constexpr double first_leaving_bytes = 1 << 16;
constexpr std::int64_t steady_call_bytes = std::int64_t{1}
                                           << 18;  // smaller calls show the latency, not the rate
constexpr std::int64_t most_timed_bytes = std::int64_t{1} << 26;

constexpr double seconds_for_compression = 0.1;  // seconds for measuring each method
constexpr int most_compressions = 5;

double time_of(Communicator& ranks, int times, const std::function<double()>& timed) {
  return plexaura::time_of(ranks, times, timed, probing);
}

// Rounds down to a multiple of `least_call_bytes`, but not below `least_call_bytes`.
std::int64_t whole_pieces(double bytes) {
  return std::max(static_cast<std::int64_t>(bytes) / least_call_bytes, std::int64_t{1}) * least_call_bytes;
}

// Measures the rate in bytes that leave a host. `leaving` returns the bytes that leave a host in a call with
// the given number of bytes.
CallSpeed speed_of(Communicator& ranks, std::int64_t most_bytes, const SizedCall& call,
                   const std::function<double(std::int64_t)>& leaving) {
  const double share = leaving(least_call_bytes) / least_call_bytes;
  CallSpeed speed = plexaura::speed_of(ranks, call,
                                       {.first_bytes = whole_pieces(first_leaving_bytes / share),
                                        .most_bytes = most_bytes,
                                        .seconds_of_call = seconds_of_round,
                                        .seconds_for_calls = seconds_for_calls},
                                       probing);
  speed.bytes_per_second *= share;
  return speed;
}

RankPlaces places_of(Communicator& ranks, const SharedWindow& window) {
  RankPlaces places{.shares_memory = window.shared()};
  for (const std::string& host : ranks.gather_all(std::to_string(ranks.place().index), probing))
    places.host_of.push_back(std::stoi(host));
  return places;
}

// Returns the call that `none` makes for a bucket.
Crossing in_windows(std::int64_t bytes) { return {Crossing::Call::sum_in_windows, bytes}; }

struct Link {
  RankPlaces places;
  LinkSpeed speed;
};

// Makes calls up to the size of the largest bucket, within 256 KiB to 64 MiB. Stops when one call is long enough.
Link measure_link(Communicator& ranks, std::int64_t bucket_bytes) {
  const std::int64_t most = std::clamp(bucket_bytes, steady_call_bytes, most_timed_bytes);
  SharedWindow window = ranks.allocate_shared(static_cast<std::size_t>(most), probing);
  Link link{.places = places_of(ranks, window), .speed = {}};
  const auto sum = [&](std::int64_t bytes) {
    ranks.sum_window(window, 0, DType::float32, bytes / static_cast<std::int64_t>(sizeof(float)), probing);
  };
  const CallSpeed sums = speed_of(
      ranks, most, sum, [&](std::int64_t bytes) { return bytes_leaving(link.places, in_windows(bytes)); });
  std::vector<std::byte> sent;
  std::vector<std::byte> received;
  const auto exchange = [&](std::int64_t bytes) {
    sent.resize(static_cast<std::size_t>(bytes * ranks.size()));
    received.resize(sent.size());
    ranks.all_to_all(sent, received, probing);
  };
  const CallSpeed blocks = speed_of(ranks, whole_pieces(static_cast<double>(most) / ranks.size()), exchange,
                                    [&](std::int64_t bytes) {
                                      return bytes_leaving(link.places, {Crossing::Call::blocks, bytes});
                                    });
  link.speed = {sums.latency, sums.bytes_per_second, blocks.bytes_per_second};
  return link;
}

// Fills `values` with numbers like gradients: most of them are small.
void draw_gradients(std::span<float> values) {
  std::uint64_t seed = 0;
  for (float& value : values) {
    const float even =
        static_cast<float>(static_cast<std::int64_t>(splitmix_scatter(seed += splitmix_step))) * 0x1p-63F;
    value = even * even * even;
  }
}

// Measures the computation of a method in a step. Each host, or each rank if hosts do not add first, exchanges
// with itself, so that none waits for another one.
class Workbench {
 public:
  Workbench(std::span<const Bucket> buckets, const RankPlaces& places, Communicator& ranks)
      : buckets_(buckets),
        compressing_(places_that_compress(places)),
        ranks_(ranks),
        host_(ranks.split(hosts_add_first(places.hosts(), ranks.size()) ? ranks.place().index : ranks.rank(),
                          probing)) {
    for (const Bucket& bucket : buckets) owed_.resize(owed_.size() + static_cast<std::size_t>(bucket.count));
    values_.resize(owed_.size());
  }

  // Returns the method's work. Returns nothing if the method refuses these parameters.
  std::optional<MethodWork> work_of(const CompressionOptions& options, const Placement& placement) {
    const auto method = make_host_compression(options, *host_);
    try {
      method->begin(placement, buckets_);
    } catch (const UserError&) {
      return std::nullopt;
    }
    MethodWork work{.name = options.name, .places = compressing_};
    const auto parties = static_cast<int>(compressing_.host_of.size());
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      work.buckets.push_back(method->crossings(i, buckets_[i].count, parties));
    std::ranges::fill(owed_, 0.0F);
    const double first = time_of(ranks_, 1, [&] { return seconds_of(*method); });
    const int times =
        std::clamp(static_cast<int>(seconds_for_compression / std::max(first, 1e-9)), 1, most_compressions);
    work.compute_seconds = time_of(ranks_, times, [&] { return seconds_of(*method); });
    return work;
  }

 private:
  // Returns the seconds of one exchange, which all ranks of a host begin at the same time, as in a step.
  double seconds_of(Compression& method) {
    draw_gradients(values_);
    ranks_.barrier(probing);
    const double begin = seconds_now();
    for (std::size_t i = 0; i < owed_.size(); ++i) owed_[i] += values_[i];
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      method.exchange(i, slice(owed_, buckets_[i]), slice(values_, buckets_[i]), probing);
    return seconds_now() - begin;
  }

  static std::span<float> slice(std::span<float> arena, const Bucket& bucket) {
    return arena.subspan(static_cast<std::size_t>(bucket.offset), static_cast<std::size_t>(bucket.count));
  }

  std::span<const Bucket> buckets_;
  RankPlaces compressing_;
  Communicator& ranks_;
  // The ranks that add up before one of them compresses, or this rank alone.
  std::unique_ptr<Communicator> host_;
  std::vector<float> owed_;
  std::vector<float> values_;
};

MethodWork plain_work(std::span<const Bucket> buckets, const RankPlaces& places) {
  MethodWork work{.name = "none", .places = places};
  for (const Bucket& bucket : buckets)
    work.buckets.push_back({in_windows(bucket.count * static_cast<std::int64_t>(sizeof(float)))});
  return work;
}

std::vector<MethodWork> measure_methods(const CompressionOptions& options, const Placement& placement,
                                        std::span<const Bucket> buckets, const RankPlaces& places,
                                        Communicator& ranks) {
  Workbench bench(buckets, places, ranks);
  std::vector<MethodWork> methods;
  for (const std::string& name : compression_names()) {
    CompressionOptions method = options;
    method.name = name;
    if (name == "none")
      methods.push_back(plain_work(buckets, places));
    else if (std::optional<MethodWork> work = bench.work_of(method, placement))
      methods.push_back(*std::move(work));
  }
  return methods;
}

}  // namespace

CompressionChoice choose_compression(const CompressionOptions& options, const Placement& placement,
                                     std::int64_t bucket_bytes, bool overlaps, Communicator& ranks) {
  if (ranks.place().count == 1) return {.name = "none"};
  std::vector<Bucket> buckets = make_buckets(placement, bucket_bytes);
  buckets.pop_back();  // the last bucket holds buffers and the tail, which are never compressed
  if (buckets.empty()) return {.name = "none"};
  const auto largest = std::ranges::max_element(buckets, {}, &Bucket::count);
  const Link link = measure_link(ranks, largest->count * static_cast<std::int64_t>(sizeof(float)));
  CompressionChoice choice{.bytes_per_second = link.speed.sum_bytes_per_second};
  for (const MethodWork& work : measure_methods(options, placement, buckets, link.places, ranks))
    choice.expected.push_back(expected_seconds(work, link.speed, overlaps));
  choice.name = ranks.gather_all(choice.expected[choose(choice.expected)].name, probing).front();
  return choice;
}

}  // namespace plexaura
