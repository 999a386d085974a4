#pragma once

namespace plexaura::cuda::runtime {

// Returns true if `passed()` becomes true within these seconds by the clock `now()`. Calls passed() at least
// once.
template <class Passed, class Now>
bool passes_within(double seconds, const Passed& passed, const Now& now) {
  const double end = now() + seconds;
  do
    if (passed()) return true;
  while (now() < end);
  return false;
}

}  // namespace plexaura::cuda::runtime
