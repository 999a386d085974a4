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

// Collects the times of instructions, communication and data loading, for a Chrome or Perfetto trace.
// Thread-safe. Recording an event may allocate memory.
class PLEXAURA_API Profile {
 public:
  // Returns the microseconds since the profile was made.
  double now() const;
  // Adds an event. `start` is a value of now(), and `duration` is in microseconds. The trace shows `detail`
  // beside the event: shapes, GFLOP/s, GB/s.
  void add(std::string name, std::string category, double start, double duration, std::string detail = {});
  // Sets how many microseconds after a reference profile this profile was made. events() adds this number to all times,
  // so that the traces of both profiles have one time axis.
  void begin_after(double microseconds) { later_ = microseconds; }
  // Returns all events as JSON, one on each line, for a TraceFile. `rank` is the rank where they happened.
  std::string events(int rank = 0) const;
  // Counts an event that was lost for lack of memory. events() reports the number of lost events.
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

// A trace file, written from the events() of each rank's profile.
class PLEXAURA_API TraceFile {
 public:
  explicit TraceFile(std::string path);  // UserError if the file cannot be created
  // Begins the events of the next rank. They may be passed to write() in several pieces.
  void begin_rank();
  void write(std::string_view piece);
  void finish();  // UserError if anything could not be written

 private:
  std::string path_;
  std::ofstream file_;
  bool has_ranks_ = false;
  int error_ = 0;  // the first errno of a failed write
};

// Records an event that lasts from its construction to its destruction. If the profile is null, the span does
// nothing and allocates nothing. If there is no memory, the event is lost. `name` and `category` must outlive
// the span. `number` (of a bucket, for example) becomes the event's detail, with `bytes` if both are given.
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
