#pragma once

#include <cstdint>
#include <doctest/doctest.h>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace plexaura::testing {

// Inputs, values and comparisons of vectors of float64.
inline Node vector_input(Graph& graph, const char* name, std::int64_t count = 3) {
  return graph.input(name, {DType::float64, {count}});
}

inline Tensor vector(const std::vector<double>& values) {
  return Tensor::of({static_cast<std::int64_t>(values.size())}, values);
}

inline void check_same_numbers(const Tensor& actual, const Tensor& expected) {
  REQUIRE(actual.type() == expected.type());
  for (std::size_t i = 0; i < actual.as<double>().size(); ++i) {
    CAPTURE(i);
    CHECK(actual.as<double>()[i] == doctest::Approx(expected.as<double>()[i]).epsilon(1e-12));
  }
}

}  // namespace plexaura::testing
