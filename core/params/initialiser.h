#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "core/base/export.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// The initial values of a parameter. Every drawn element depends only on the seed, the parameter's name and type, and
// the element's logical index. So all ranks, and any number of ranks, start from the same weights. For weights
// [O, I, ...] fan_in is I times the other extents, and fan_out is O times the other extents. Several threads
// may make tensors with one Initialiser at once.
struct PLEXAURA_API Initialiser {
  enum class Kind : std::uint8_t { constant, uniform, normal, given };
  enum class Fan : std::uint8_t { none, in, out, average };

  Kind kind = Kind::constant;
  Fan fan = Fan::none;
  // The constant, or the deviation. With a fan, the deviation is sqrt(value / fan).
  double value = 0;
  // Elements at this index of the first axis start as 0. An embedding uses it for the index that means "no
  // word".
  std::optional<std::int64_t> zero_row = {};
  // With Kind::given: returns the values.
  std::function<Tensor()> read = {};

  static Initialiser zeros() { return {}; }
  static Initialiser ones() { return constant(1); }
  static Initialiser constant(double value) { return {Kind::constant, Fan::none, value}; }
  static Initialiser uniform(double limit);  // values in [-limit, limit]
  static Initialiser normal(double deviation) { return {Kind::normal, Fan::none, deviation}; }
  static Initialiser glorot_uniform() {
    return {Kind::uniform, Fan::average, 1};
  }  // variance 2 / (fan_in + fan_out); Glorot and Bengio 2010
  static Initialiser glorot_normal() { return {Kind::normal, Fan::average, 1}; }
  // Variance 2 / fan_in; He et al. 2015.
  static Initialiser he_uniform() { return {Kind::uniform, Fan::in, 2}; }
  static Initialiser he_normal() { return {Kind::normal, Fan::in, 2}; }
  static Initialiser he_normal_fan_out() {
    return {Kind::normal, Fan::out, 2};
  }  // the initial values of published ResNets
  // Values in [-limit, limit] with limit = 1 / sqrt(fan_in).
  static Initialiser lecun_uniform() { return {Kind::uniform, Fan::in, 1.0 / 3}; }

  // The parameter starts with the values that `read` returns, such as those of a file, converted to its dtype. `read` is
  // called when the parameter is made, and may throw UserError. A ParameterStore then drops `read` from its specs.
  static Initialiser given(std::function<Tensor()> read);

  // Makes the initial tensor of the parameter `name`. Throws UserError if the type is not floating, if a
  // constant is not finite, if a deviation or limit is negative or not finite, and if given values have another shape.
  Tensor make(const TensorType& type, std::string_view name, std::uint64_t seed) const;
};

}  // namespace plexaura
