#pragma once

namespace plexaura::cuda::runtime {

// Whether `passed()` says so within these seconds by `now()`. It is asked at least once.
template <class Passed, class Now>
bool passes_within(double seconds, const Passed& passed, const Now& now) {
  const double end = now() + seconds;
  do
    if (passed()) return true;
  while (now() < end);
  return false;
}

}  // namespace plexaura::cuda::runtime
