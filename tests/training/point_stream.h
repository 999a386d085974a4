#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "training/data/stream_source.h"

namespace plexaura::testing {

struct PointStreamOptions {
  std::vector<std::int64_t>
      counts;                // the number of samples of each rank's stream; one number if it is not divided
  bool is_divided = false;   // the sample i of rank r is point i * ranks + r
  std::int64_t broken = -1;  // the sample that cannot be read, of the last rank; negative: none
  std::int64_t interrupted =
      -1;  // the sample of the last rank before which its reader is interrupted; negative: none
  std::int64_t slow = 0;     // so many samples of the last rank take a fifth of a second each
  std::int64_t points = 30;  // after so many the points come again
};

// Returns a stream of points(): see small_run.h.
std::shared_ptr<const StreamSource> point_stream(const PointStreamOptions& options);

}  // namespace plexaura::testing
