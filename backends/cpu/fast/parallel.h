#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "core/loops/denormals.h"

namespace plexaura::fast {

// The calling thread does work that takes fewer nanoseconds than this: starting the threads takes about a
// microsecond, and more if they sleep.
constexpr double worth_forking = 5000;

inline int thread_count(std::int64_t items, double nanoseconds_per_item) {
#ifdef _OPENMP
  if (static_cast<double>(items) * nanoseconds_per_item < worth_forking || omp_in_parallel() != 0) return 1;
  return static_cast<int>(std::min<std::int64_t>(items, omp_get_max_threads()));
#else
  (void)items;
  (void)nanoseconds_per_item;
  return 1;
#endif
}

// Returns the number of threads that any amount of work is divided among at most.
inline int most_threads() { return thread_count(std::numeric_limits<std::int32_t>::max(), worth_forking); }

// Calls body(begin, end) for one contiguous piece of [0, items) on each thread. Pieces begin at multiples of
// `granule`. All threads treat denormals as the calling thread does.
template <class Body>
void parallel_pieces(std::int64_t items, double nanoseconds_per_item, [[maybe_unused]] std::int64_t granule,
                     const Body& body) {
  const int threads = thread_count(items, nanoseconds_per_item);
  if (threads == 1) {
    body(std::int64_t{0}, items);
    return;
  }
#ifdef _OPENMP
  const std::int64_t granules = (items + granule - 1) / granule;
  const Denormals denormals = denormals_here();
  const DenormalScope of_new_threads(Denormals::flushed);
#pragma omp parallel num_threads(threads)
  {
    const DenormalScope of_body(denormals);
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t begin = granules * thread / team * granule;
    const std::int64_t end = std::min(items, granules * (thread + 1) / team * granule);
    if (begin < end) body(begin, end);
  }
#endif
}

template <class Body>
void parallel_pieces(std::int64_t items, double nanoseconds_per_item, const Body& body) {
  parallel_pieces(items, nanoseconds_per_item, 1, body);
}

}  // namespace plexaura::fast
