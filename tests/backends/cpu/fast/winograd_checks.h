#pragma once

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "core/device/forwarding_backend.h"
#include "core/ops/conv2d.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"

// Functions that the tests of our Winograd kernels share.

namespace plexaura::testing::winograd {

inline const std::string name = "fast winograd";

// Rounding errors of the transforms relative to the largest result.
constexpr double bound = 2e-6;

// A convolution with windows of 3x3.
struct Case {
  Shape x;
  std::int64_t outputs;
  Conv2dOptions options;
  bool has_bias = false;
};

// The CPU backend that offers only our Winograd kernels with this layout of the result.
class OnlyWinograd final : public ForwardingBackend {
 public:
  OnlyWinograd(Backend& cpu, Layout result) : ForwardingBackend(cpu), result_(std::move(result)) {}
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates = inner().propose(query);
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return candidate.implementation != name || candidate.outputs[0] != result_;
    });
    return candidates;
  }

 private:
  Layout result_;
};

// Returns values for the leaves that a node reads.
inline std::vector<Tensor> drawn_inputs(const Node& node) {
  std::vector<Tensor> values;
  for (const Value input : node.graph().record(node.id()).inputs)
    values.push_back(drawn(node.graph().type(input), as_leaf(*node.graph().record(input.node).op)->label()));
  return values;
}

// Computes a node of doubles with the portable kernels, from drawn inputs.
inline std::vector<double> exact(const BuildNode& build) {
  const auto backend = make_portable_backend();
  Graph graph;
  const Node node = build(graph, DType::float64);
  RegionRun run(*backend, graph, single(graph, node.id()), drawn_inputs(node));
  run.launch();
  return run.output().read().to_doubles();
}

struct Errors {
  double largest;  // relative to the largest result
  double typical;  // the root of the mean of squares, relative to that of the results
};

inline Errors errors_of(const Tensor& found, const std::vector<double>& expected) {
  const std::vector<double> values = found.to_doubles();
  REQUIRE(values.size() == expected.size());
  double difference = 0;
  double largest = 0;
  double squares_of_differences = 0;
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::isfinite(values[i]) ? std::abs(values[i] - expected[i]) : HUGE_VAL;
    difference = std::max(difference, error);
    largest = std::max(largest, std::abs(expected[i]));
    squares_of_differences += error * error;
    squares += expected[i] * expected[i];
  }
  return {difference / largest, std::sqrt(squares_of_differences / squares)};
}

inline const std::vector<Layout> layouts{blocked_channels(8), blocked_channels(16), channels_last()};

}  // namespace plexaura::testing::winograd
