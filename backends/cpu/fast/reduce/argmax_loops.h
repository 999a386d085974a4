#pragma once

#include <cstdint>

namespace plexaura::fast {

// The most columns that one call takes: their largest elements stay in the first cache.
constexpr std::int64_t most_argmax_columns = 256;

// Writes for each column of a row-major array the row of its largest element, the first one of equal elements, or that of
// its first NaN. `stride` is the distance of rows. T is float or double.
template <class T>
using ArgMaxLoop = void (*)(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                            std::int64_t* places);

template <class T>
ArgMaxLoop<T> argmax_loop();

}  // namespace plexaura::fast
