#pragma once

#include <cstddef>
#include <span>

#include "core/params/weights_immigration.h"
#include "distributed/group/reduce.h"

namespace plexaura {

// Of the weights behind a border, what a parameter server and its clients have in common: trainables, and behind them
// buffers, as they lie in the value arena, in front of the frozen parameters.
class SharedWeights {
 public:
  // Throws UserError for weights of a type that ranks do not sum.
  explicit SharedWeights(WeightsImmigration& border) : border_(&border) { check_summable(dtype()); }

  DType dtype() const { return border_->placement().dtype(ArenaKind::value); }
  std::size_t trainables() const { return count(ParameterRole::trainable); }
  // As the border shows them; store() makes what was written there the weights.
  std::span<std::byte> bytes() const {
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

// Calls `work` with an element of the type that weights have.
template <class Work>
void with_elements(DType dtype, Work&& work) {
  dtype == DType::float64 ? work(double{}) : work(float{});
}

}  // namespace plexaura
