#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/tensor/tensor.h"

namespace plexaura::testing {

// Random numbers that are the same on every machine. One thread at a time draws from one.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  double between(double low, double high);  // low <= x < high
  std::int64_t below(std::int64_t count);   // 0 .. count - 1
  Tensor tensor(const TensorType& type, double low, double high);

 private:
  std::uint64_t seed_;
  std::int64_t drawn_ = 0;
};

// Fills a value. The ready-made ones choose points at which a function can be differentiated, and keep
// nothing of a call: several threads may use one, each with a Random of its own.
using Values = std::function<void(std::span<double> values, Random& random)>;

Values between(double low, double high);
Values away_from_zero(double smallest = 0.1, double largest = 2);  // of either sign
// All different, at least `spacing` from each other, in random order, around zero: no ties under a maximum.
Values distinct(double spacing = 0.1);
Values whole(std::int64_t low, std::int64_t high);  // whole numbers, low <= x < high
Values these(std::vector<double> given);

Tensor make(const TensorType& type, const Values& values, Random& random);

}  // namespace plexaura::testing
