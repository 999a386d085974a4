#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/tensor/tensor.h"

namespace plexaura::testing {

// Generates random numbers that are the same on every machine. Only one thread at a time may use an object.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  double between(double low, double high);  // returns x with low <= x < high
  std::int64_t below(std::int64_t count);   // returns one of 0 .. count - 1
  Tensor tensor(const TensorType& type, double low, double high);

 private:
  std::uint64_t seed_;
  std::int64_t drawn_ = 0;
};

// Fills the elements of a value. The functions below avoid points at which usual functions have no
// derivative. They keep no state between calls, so several threads may use one if each has its own Random.
using Values = std::function<void(std::span<double> values, Random& random)>;

Values between(double low, double high);
Values away_from_zero(double smallest = 0.1, double largest = 2);  // returns positive and negative numbers
// Returns numbers around zero in random order, any two at least `spacing` apart, so that a maximum has no
// ties.
Values distinct(double spacing = 0.1);
Values whole(std::int64_t low, std::int64_t high);  // returns whole numbers x with low <= x < high
Values these(std::vector<double> given);

Tensor make(const TensorType& type, const Values& values, Random& random);

}  // namespace plexaura::testing
