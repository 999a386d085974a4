#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::bounds {

inline Node value(Graph& graph, Shape shape, DType dtype = DType::float32) {
  return graph.input(fmt::format("x{}", graph.size()), {dtype, std::move(shape)});
}
inline Node matrix(Graph& graph) { return value(graph, {2, 3}); }
inline Node images(Graph& graph) { return value(graph, {2, 4, 4, 4}); }
inline Node labels(Graph& graph) { return value(graph, {2}, DType::int64); }

// A value with `rank` axes of this extent.
inline Node of_rank(Graph& graph, double rank, std::int64_t extent = 4) {
  return value(graph, Shape(std::vector<std::int64_t>(static_cast<std::size_t>(rank), extent)));
}

inline std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

// Builds a call with a number, which is an option, an extent, or the rank of an operand.
using BuildWithNumber = std::function<void(Graph& graph, double number)>;

// Checks that the call accepts some numbers, and that the error for others prints the name of the op and this rule, in
// which {} stands for the refused number.
inline void check_bounds(const std::string& op, const std::vector<double>& accepted,
                         const std::vector<double>& refused, const std::string& rule,
                         const BuildWithNumber& build) {
  CAPTURE(op);
  CAPTURE(rule);
  REQUIRE_FALSE(op.empty());
  REQUIRE_FALSE(rule.empty());
  const auto error_of = [&](double number) {
    Graph graph;
    return user_error([&] { build(graph, number); });
  };
  for (const double number : accepted) {
    CAPTURE(number);
    CHECK(error_of(number) == "");
  }
  for (const double number : refused) {
    const std::string error = error_of(number);
    const std::string words = fmt::format(fmt::runtime(rule), number);
    CHECK_MESSAGE(contains(error, op), fmt::format("{} of {}: {}", words, number, error));
    CHECK_MESSAGE(contains(error, words), fmt::format("'{}' is not in: {}", words, error));
  }
}

}  // namespace plexaura::testing::bounds
