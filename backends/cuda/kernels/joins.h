#pragma once

#include "backends/cuda/kernels/block.h"

namespace plexaura::cuda {

// Combines the elements that the threads of a block have stored in a shared array, one each, in a fixed
// order. The first element holds the result.
template <class T, class Parts, class Join>
PLEXAURA_DEVICE inline void join_all(Block& block, Parts& parts, const Join& join) {
  for (int half = threads / 2; half > 0; half /= 2)
    block.each_thread([&](int thread) {
      if (thread < half)
        parts[thread] = join(static_cast<T>(parts[thread]), static_cast<T>(parts[thread + half]));
    });
}

// Sets parts[0] to the sum of value(i) for the items [0, count).
template <class T, class Parts, class Value>
PLEXAURA_DEVICE inline void sum_all(Block& block, Parts& parts, std::int64_t count, const Value& value) {
  block.each_thread([&](int thread) {
    T sum = 0;
    for (std::int64_t i = thread; i < count; i += threads) sum += value(i);
    parts[thread] = sum;
  });
  join_all<T>(block, parts, [](T a, T b) { return a + b; });
}

}  // namespace plexaura::cuda
