#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
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
  // Throws UserError where the file cannot be written.
  void write(const std::string& path) const;

 private:
  struct Event {
    std::string name;
    std::string category;
    std::string detail;
    double start;
    double duration;
    std::size_t thread;
  };
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

// An event from its construction to its end. Does nothing, and allocates nothing, without a profile. `name`
// and `category` must outlive it; `detail` of a bucket, say, is a number.
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
