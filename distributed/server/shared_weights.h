#pragma once

#include <cstddef>
#include <fmt/format.h>
#include <span>

#include "core/error.h"
#include "core/params/weights_immigration.h"

namespace plexaura {

// Calls `work` with an element of the type that weights have. UserError for one that a parameter server does not take in.
template <class Work>
void with_elements(DType dtype, Work&& work) {
  if (dtype == DType::float64) return work(double{});
  if (dtype == DType::float32) return work(float{});
  throw UserError(fmt::format(
      "a parameter server takes weights of float64 or float32, not {}: cast them first", name_of(dtype)));
}

// Of the weights behind a border, what a parameter server and its clients have in common: trainables, and behind them
// buffers, as they lie in the value arena, in front of the frozen parameters.
class SharedWeights {
 public:
  // Throws UserError for weights of a type other than float64 and float32.
  explicit SharedWeights(WeightsImmigration& border) : border_(&border) {
    with_elements(dtype(), [](auto) {});
  }

  DType dtype() const { return border_->placement().dtype(ArenaKind::value); }
  std::size_t trainables() const { return count(ParameterRole::trainable); }
  // Copies them off the device, to where the border shows them; store() makes what was written there the weights.
  std::span<std::byte> fetch() const {
    return border_->fetch_values().first((trainables() + count(ParameterRole::buffer)) * size_of(dtype()));
  }
  void store() const { border_->store_values(); }

 private:
  std::size_t count(ParameterRole role) const {
    return static_cast<std::size_t>(border_->placement().count(role));
  }

  WeightsImmigration* border_;
};

// Bytes as elements of the type T.
template <class T, class Byte>
std::span<T> elements_of(std::span<Byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace plexaura
