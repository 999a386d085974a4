#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/exchange/weights_immigration.h"
#include "distributed/node/reduce.h"

namespace plexaura {

// What one of several servers holds of the shared weights: contiguous, and cut at a cache line, also within a parameter.
struct Shard {
  std::size_t begin = 0;  // bytes
  std::size_t bytes = 0;
  std::size_t trainables = 0;  // elements, before those of buffers

  template <class Byte>
  std::span<Byte> of(std::span<Byte> weights) const {
    return weights.subspan(begin, bytes);
  }
};

// Of the weights behind a border, what a parameter server and its clients have in common: trainables, and behind them
// buffers, as they lie in the value arena, in front of the frozen parameters.
class SharedWeights {
 public:
  // Throws UserError for weights of a type other than float64 and float32.
  explicit SharedWeights(WeightsImmigration& border) : border_(&border) {
    with_elements(dtype(), [](auto) {});
  }

  DType dtype() const { return border_->placement().dtype(ArenaKind::value); }
  // That of a server, of so many: as many cache lines as any other has, or one more.
  Shard shard(int server, int servers) const {
    const Part part = part_of(static_cast<std::int64_t>(shared()), dtype(), server, servers);
    const auto first = static_cast<std::size_t>(part.first);
    const auto count = static_cast<std::size_t>(part.count);
    const std::size_t before_buffers = std::max(trainables(), first) - first;
    return {first * size_of(dtype()), count * size_of(dtype()), std::min(before_buffers, count)};
  }
  // Copies them off the device, to where the border shows them; store() makes what was written there the weights.
  std::span<std::byte> fetch() const { return border_->fetch_values().first(shared() * size_of(dtype())); }
  void store() const { border_->store_values(); }

 private:
  std::size_t trainables() const { return count(ParameterRole::trainable); }
  std::size_t shared() const { return trainables() + count(ParameterRole::buffer); }
  std::size_t count(ParameterRole role) const {
    return static_cast<std::size_t>(border_->placement().count(role));
  }

  WeightsImmigration* border_;
};

}  // namespace plexaura
