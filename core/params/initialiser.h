#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/export.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// How a parameter starts. Every element is a function of the seed, the parameter's name and the element's
// logical index alone: all ranks, and every number of ranks, start from the same weights. With weights [O, I,
// ...] fan_in is I x the rest and fan_out is O x the rest. A value; several threads may make tensors by one
// at once.
struct PLEXAURA_API Initialiser {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  enum class Fan : std::uint8_t { none, in, out, average };

  Kind kind = Kind::constant;
  Fan fan = Fan::none;
  double value = 0;  // the constant; or the deviation, where a fan is named: deviation = sqrt(value / fan)

  static Initialiser zeros() { return {}; }
  static Initialiser ones() { return constant(1); }
  static Initialiser constant(double value) { return {Kind::constant, Fan::none, value}; }
  static Initialiser uniform(double limit);  // in [-limit, limit)
  static Initialiser normal(double deviation) { return {Kind::normal, Fan::none, deviation}; }
  static Initialiser glorot_uniform() {
    return {Kind::uniform, Fan::average, 1};
  }  // Glorot & Bengio 2010: variance 2 / (in + out)
  static Initialiser glorot_normal() { return {Kind::normal, Fan::average, 1}; }
  static Initialiser he_uniform() { return {Kind::uniform, Fan::in, 2}; }  // He et al. 2015: variance 2 / in
  static Initialiser he_normal() { return {Kind::normal, Fan::in, 2}; }
  static Initialiser he_normal_fan_out() {
    return {Kind::normal, Fan::out, 2};
  }  // what ResNets are published with
  static Initialiser lecun_uniform() { return {Kind::uniform, Fan::in, 1.0 / 3}; }  // within 1 / sqrt(in)

  // UserError for a type that is not floating, a constant that is not finite, and a deviation or limit that is not
  // finite or below 0.
  Tensor make(const TensorType& type, std::string_view name, std::uint64_t seed) const;
};

}  // namespace plexaura
