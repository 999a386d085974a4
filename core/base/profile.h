#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"

namespace plexaura {

// Times of instructions, communication and data loading, written as a Chrome/Perfetto trace. Thread-safe.
// Recording an event may allocate: a profiled run is not an allocation-free one.
class PLEXAURA_API Profile {
 public:
  // Microseconds since the profile was made.
  double now() const;
  // `detail` is shown beside the event: shapes, GFLOP/s, GB/s.
  void add(std::string name, std::string category, double start, double duration, std::string detail = {});
  // By how many microseconds this profile was made after another one, in whose times events() is to tell.
  void begin_after(double microseconds) { later_ = microseconds; }
  // All events as JSON, a line each, for a TraceFile. `rank`: where they happened.
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
  double later_ = 0;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::atomic<std::int64_t> missing_ = 0;
};

// A trace, written from what Profile::events() gives on each rank.
class PLEXAURA_API TraceFile {
 public:
  explicit TraceFile(std::string path);  // UserError where it cannot be created
  // The events of the next rank, which may come in several pieces.
  void begin_rank();
  void write(std::string_view piece);
  void finish();  // UserError where anything could not be written

 private:
  std::string path_;
  std::ofstream file_;
  bool has_ranks_ = false;
  int error_ = 0;  // the first one of writing
};

// An event from its construction to its end, where there is memory for it. Does nothing, and allocates nothing,
// without a profile. `name` and `category` must outlive it. `number`, of a bucket, say, and `bytes` are its detail.
class PLEXAURA_API ProfileSpan {
 public:
  ProfileSpan(Profile* profile, std::string_view name, std::string_view category,
              std::optional<std::size_t> number = {}, std::optional<std::size_t> bytes = {});
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;
  ~ProfileSpan();

 private:
  std::string detail() const;

  Profile* profile_;
  std::string_view name_;
  std::string_view category_;
  std::optional<std::size_t> number_;
  std::optional<std::size_t> bytes_;
  double start_;
};

}  // namespace plexaura
