#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/exchange/weights_immigration.h"
#include "distributed/node/reduce.h"

namespace plexaura {

// The contiguous range of the shared weights that one server holds. It is cut at cache lines, also within a
// parameter.
struct Shard {
  std::size_t begin = 0;  // offset in bytes
  std::size_t bytes = 0;
  std::size_t trainables = 0;  // number of elements of trainable parameters; the elements of buffers follow

  template <class Byte>
  std::span<Byte> of(std::span<Byte> weights) const {
    return weights.subspan(begin, bytes);
  }
};

// The weights that a parameter server and its clients share: trainable parameters and then buffers, with
// their layout at the beginning of the value arena.
class SharedWeights {
 public:
  // Throws UserError for weights of a type other than float64 and float32.
  explicit SharedWeights(WeightsImmigration& border) : border_(&border) {
    with_elements(dtype(), [](auto) {});
  }

  DType dtype() const { return border_->placement().dtype(ArenaKind::value); }
  // Returns the shard of one of several servers. The numbers of cache lines of two shards differ by one at most.
  Shard shard(int server, int servers) const {
    const Part part = part_of(static_cast<std::int64_t>(shared()), dtype(), server, servers);
    const auto first = static_cast<std::size_t>(part.first);
    const auto count = static_cast<std::size_t>(part.count);
    const std::size_t before_buffers = std::max(trainables(), first) - first;
    return {first * size_of(dtype()), count * size_of(dtype()), std::min(before_buffers, count)};
  }
  // Copies the weights from the device to the border's host memory. store() copies that memory back to the
  // device.
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
