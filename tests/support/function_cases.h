#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing {

// A function of one floating value, from which a case and one of misuse are made.
struct UnaryFunction {
  std::string op;
  Node (*build)(Operand x);
  Values values;
  double (*expected)(double x);
  Tolerances tolerances = {};
};

inline OpCase case_of(const UnaryFunction& of) {
  OpCase op_case{of.op,
                 of.op,
                 [build = of.build](Graph&, auto x) { return std::vector{build(x[0])}; },
                 {{{3, 5}, of.values}},
                 reference::elementwise(of.expected)};
  op_case.tolerances = of.tolerances;
  return op_case;
}

// A step has no gradient.
inline OpCase case_of_step(const UnaryFunction& of) {
  OpCase op_case = case_of(of);
  op_case.differentiable = false;
  return op_case;
}

inline WrongCase of_integers(const UnaryFunction& of) {
  return {of.op + " of integers",
          of.op,
          [build = of.build](Graph& graph) {
            build(graph.input("x", {DType::int64, {2}}));
          },
          {"int64[2]", "floating", "cast()"}};
}

template <class Made>
std::vector<Made> made_of(const std::vector<UnaryFunction>& functions,
                          Made (*make)(const UnaryFunction& of)) {
  std::vector<Made> all;
  std::ranges::transform(functions, std::back_inserter(all), make);
  return all;
}

// Returns a case with operands of two dtypes, which must be one.
inline WrongCase of_two_dtypes(const std::string& op, Node (*build)(Operand a, Operand b)) {
  return {op + " of two dtypes",
          op,
          [=](Graph& graph) {
            build(graph.input("a", {DType::float32, {2}}), graph.input("b", {DType::float64, {2}}));
          },
          {"float32[2]", "float64[2]", "cast()"}};
}

}  // namespace plexaura::testing
