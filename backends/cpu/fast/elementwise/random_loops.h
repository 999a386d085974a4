#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// Each loop makes one value from each of draws_at_once words of random bits.

// Computes min(low + width * word / 2^32, largest) in double.
PLEXAURA_CLONED void uniform_loop(const std::uint32_t* words, double low, double width, double largest,
                                  float* values);

// Makes normally distributed values by the method of Box and Muller: each pair of words makes two values, the
// cosine for the even index and the sine for the odd one. Errors are within a few units of the last place.
PLEXAURA_CLONED void normal_loop(const std::uint32_t* words, float mean, float deviation, float* values);

}  // namespace plexaura::fast
