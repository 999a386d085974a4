#pragma once

#include <cstdint>

namespace plexaura::fast {

// Values from draws_at_once words of random bits, one for each.

// low + width * word / 2^32, computed in double, or `largest` where that is smaller.
void uniform_loop(const std::uint32_t* words, double low, double width, double largest, float* values);

// Box and Muller: two words make two values, the cosine for the even one and the sine for the odd one. Within a few
// units of the last place.
void normal_loop(const std::uint32_t* words, float mean, float deviation, float* values);

}  // namespace plexaura::fast
