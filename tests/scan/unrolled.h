#pragma once

#include <vector>

#include "core/ops/concat.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/scan/scan.h"

namespace plexaura::testing {

inline Node element(const Node& x, std::int64_t index) {
  std::vector<std::int64_t> extents(x.shape().begin() + 1, x.shape().end());
  return reshape(slice(x, {.axis = 0, .start = index, .stop = index + 1}), extents);
}

inline Node stack(const std::vector<Node>& elements) {
  std::vector<Operand> parts;
  for (const Node& node : elements) {
    std::vector<std::int64_t> extents = node.shape().extents();
    extents.insert(extents.begin(), 1);
    parts.emplace_back(reshape(node, extents));
  }
  return concat(parts, 0);
}

// Returns the result of a scan of at least one step, computed by a graph without a loop.
inline ScanStep unrolled(const std::vector<Node>& xs, std::vector<Node> carries, const ScanBody& body,
                         const ScanOptions& options = {}) {
  const std::int64_t steps = xs.empty() ? *options.steps : xs[0].shape()[0];
  std::vector<std::vector<Node>> outputs;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t index = options.reverse ? steps - 1 - step : step;
    std::vector<Node> elements;
    for (const Node& x : xs) elements.push_back(element(x, index));
    ScanStep next = body(carries, elements);
    carries = std::move(next.carries);
    outputs.resize(next.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i].insert(options.reverse ? outputs[i].begin() : outputs[i].end(), next.outputs[i]);
  }
  ScanStep result{std::move(carries), {}};
  for (const std::vector<Node>& of_steps : outputs) result.outputs.push_back(stack(of_steps));
  return result;
}

}  // namespace plexaura::testing
