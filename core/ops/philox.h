#pragma once

#include <cstdint>

// Random numbers as a function of a counter (Philox 4x32 with ten rounds: Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011), in plain code for every device. Includes only
// headers that a compiler of device code has.

#ifndef PLEXAURA_HD
#define PLEXAURA_HD
#endif

namespace plexaura::philox {

struct Block {
  std::uint32_t words[4];
};

struct Key {
  std::uint32_t words[2];
};

constexpr int rounds = 10;

PLEXAURA_HD inline Block one_round(Block counter, Key key) {
  const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter.words[0];
  const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter.words[2];
  return {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.words[1] ^ key.words[0],
           static_cast<std::uint32_t>(product1),
           static_cast<std::uint32_t>(product0 >> 32) ^ counter.words[3] ^ key.words[1],
           static_cast<std::uint32_t>(product0)}};
}

PLEXAURA_HD inline Key next_key(Key key) {
  return {{key.words[0] + 0x9E3779B9U, key.words[1] + 0xBB67AE85U}};
}

// Returns the 128 random bits of a counter under a key.
PLEXAURA_HD inline Block philox4x32_10(Block counter, Key key) {
  for (int round = 0; round < rounds; ++round) {
    counter = one_round(counter, key);
    key = next_key(key);
  }
  return counter;
}

// Mixes the bits of a number; different numbers have different results.
PLEXAURA_HD inline std::uint64_t spread(std::uint64_t bits) {
  bits = (bits ^ (bits >> 33)) * 0xFF51AFD7ED558CCDU;
  bits = (bits ^ (bits >> 33)) * 0xC4CEB9FE1A85EC53U;
  return bits ^ (bits >> 33);
}

// The random bits of one op in one step: 32 bits for each index. Seed and stream determine the key, step and
// index the counter.
struct Draws {
  std::uint64_t key;
  std::uint64_t step;

  PLEXAURA_HD Draws(std::int64_t seed, std::int64_t step_number, std::int64_t stream)
      : key(spread(static_cast<std::uint64_t>(seed) ^ spread(static_cast<std::uint64_t>(stream)))),
        step(static_cast<std::uint64_t>(step_number)) {}

  // Returns the bits of the indices 4 number .. 4 number + 3.
  PLEXAURA_HD Block block(std::int64_t number) const { return philox4x32_10(counter(number), first_key()); }

  PLEXAURA_HD Block counter(std::int64_t number) const {
    const auto place = static_cast<std::uint64_t>(number);
    return {{static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32),
             static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)}};
  }
  PLEXAURA_HD Key first_key() const {
    return {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  }
};

}  // namespace plexaura::philox
