#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/export.h"

namespace plexaura {

// Times of instructions, communication and data loading, written as a Chrome/Perfetto trace. Thread-safe.
// Recording an event may allocate: a profiled run is not an allocation-free one.
class PLEXAURA_API Profile {
 public:
  // Microseconds since the profile was made.
  double now() const;
  // `detail` is shown beside the event: shapes, GFLOP/s, GB/s.
  void add(std::string name, std::string category, double start, double duration, std::string detail = {});
  // All events as JSON, a line each, for write_trace(). `rank`: where they happened.
  std::string events(int rank = 0) const;
  // Counts an event for which there was no memory; events() then says how many there were.
  void miss() noexcept { ++missing_; }

 private:
  struct Event {
    std::string name;
    std::string category;
    std::string detail;
    double start;
    double duration;
    std::size_t thread;
  };
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::atomic<std::int64_t> missing_ = 0;
};

// Writes a trace from what Profile::events() gave on each rank. Their clocks agree as far as the profiles were
// made at the same time. Throws UserError where the file cannot be written.
PLEXAURA_API void write_trace(const std::string& path, std::span<const std::string> events);

// An event from its construction to its end, where there is memory for it. Does nothing, and allocates nothing,
// without a profile. `name` and `category` must outlive it; `detail` of a bucket, say, is a number.
class PLEXAURA_API ProfileSpan {
 public:
  ProfileSpan(Profile* profile, std::string_view name, std::string_view category,
              std::optional<std::size_t> detail = {});
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;
  ~ProfileSpan();

 private:
  Profile* profile_;
  std::string_view name_;
  std::string_view category_;
  std::optional<std::size_t> detail_;
  double start_;
};

}  // namespace plexaura
