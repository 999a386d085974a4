#include "backends/cpu/fast/elementwise/draws.h"

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t blocks = draws_at_once / 4;

}  // namespace

// Computes the rounds of all blocks side by side, so that the loops vectorise.
PLEXAURA_CLONES void draw(const philox::Draws& draws, std::int64_t block, std::uint32_t* words) {
  philox::Block counters[blocks];
  for (std::int64_t i = 0; i < blocks; ++i) counters[i] = draws.counter(block + i);
  philox::Key key = draws.first_key();
  std::uint32_t a[blocks];
  std::uint32_t b[blocks];
  std::uint32_t c[blocks];
  std::uint32_t d[blocks];
  for (std::int64_t i = 0; i < blocks; ++i) {
    a[i] = counters[i].words[0];
    b[i] = counters[i].words[1];
    c[i] = counters[i].words[2];
    d[i] = counters[i].words[3];
  }
  for (int round = 0; round < philox::rounds; ++round) {
#pragma omp simd
    for (std::int64_t i = 0; i < blocks; ++i) {
      const philox::Block next = philox::one_round({{a[i], b[i], c[i], d[i]}}, key);
      a[i] = next.words[0];
      b[i] = next.words[1];
      c[i] = next.words[2];
      d[i] = next.words[3];
    }
    key = philox::next_key(key);
  }
  for (std::int64_t i = 0; i < blocks; ++i) {
    words[4 * i] = a[i];
    words[4 * i + 1] = b[i];
    words[4 * i + 2] = c[i];
    words[4 * i + 3] = d[i];
  }
}

}  // namespace plexaura::fast
