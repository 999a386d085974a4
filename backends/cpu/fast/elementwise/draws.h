#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/parallel.h"
#include "core/ops/philox.h"
#include "core/tensor/shape.h"

namespace plexaura::fast {

// The number of draws that one call of draw() makes.
constexpr std::int64_t draws_at_once = 64;

// Sets words[i] to the random bits of index 4 * block + i, for draws_at_once values of i.
PLEXAURA_CLONED void draw(const philox::Draws& draws, std::int64_t block, std::uint32_t* words);

// Selects the draws that belong to a value. If the value has a batch axis, they begin at its first element's
// place in the global batch, so that ranks draw different numbers. Otherwise they begin at 0, and all ranks
// draw the same.
class DrawnElements {
 public:
  DrawnElements(const Shape& shape, bool batch, std::int64_t stream)
      : elements_(shape.elements()),
        of_sample_(batch && shape.rank() > 0 ? elements_ / shape[0] : 0),
        stream_(stream) {}

  // Calls body(element, count, words, skipped) for pieces of the value: element + i of the piece has the bits
  // words[skipped + i], and all draws_at_once words are valid. `random` has the content of
  // StepScalar::random: seed, step, first sample.
  template <class Body>
  void for_each_piece(const std::int64_t* random, double nanoseconds, const Body& body) const {
    parallel_pieces(elements_, nanoseconds, draws_at_once, [&](std::int64_t begin, std::int64_t end) {
      for_each_piece_of(begin, end, random, body);
    });
  }

  // The same for the elements from `begin` to `end`, on the calling thread.
  template <class Body>
  void for_each_piece_of(std::int64_t begin, std::int64_t end, const std::int64_t* random,
                         const Body& body) const {
    const philox::Draws draws(random[0], random[1], stream_);
    const std::int64_t first = random[2] * of_sample_;
    std::uint32_t words[draws_at_once];
    while (begin < end) {
      draw(draws, (first + begin) / 4, words);
      const std::int64_t skipped = (first + begin) % 4;
      const std::int64_t count = std::min(end - begin, draws_at_once - skipped);
      body(begin, count, words, skipped);
      begin += count;
    }
  }

 private:
  std::int64_t elements_;
  std::int64_t of_sample_;
  std::int64_t stream_;
};

}  // namespace plexaura::fast
