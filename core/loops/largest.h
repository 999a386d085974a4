#pragma once

#include <cstdint>
#include <limits>

namespace plexaura::portable {

// Returns the largest of `count` elements that are `step` elements apart. Ignores NaNs. Returns -infinity if there is no
// other element.
template <class T>
double largest_of(const T* elements, std::int64_t count, std::int64_t step = 1) {
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto element = static_cast<double>(elements[i * step]);
    if (element > largest) largest = element;  // g++ 12 for 64-bit ARM fails with an internal error at fmax()
  }
  return largest;
}

}  // namespace plexaura::portable
