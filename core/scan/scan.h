#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

struct ScanOptions {
  // The number of steps. It may be left out if there are xs, whose axis 0 has this extent.
  std::optional<std::int64_t> steps = {};
  bool reverse = false;  // true: from the last step to the first
  // True: the gradient computes the values of a step again, instead of keeping them for all steps.
  bool recompute = false;
  bool same_draws = false;  // true: random ops draw the same numbers in each step
};

// The result of a scan's body: the carries for the next step, and the values that the scan collects.
struct ScanStep {
  std::vector<Node> carries = {};
  std::vector<Node> outputs = {};
};

// The function that builds the body of a scan. It is called once, with the carries and with one element,
// along axis 0, of each of the xs.
using ScanBody = std::function<ScanStep(const std::vector<Node>& carries, const std::vector<Node>& xs)>;

// A loop over axis 0 of `xs`. Calls `body` once, and runs the nodes that it appends to the graph in each
// step.
//   xs: [T, ...] each; the body gets [...].
//   carries: the values with which the first step begins. Each keeps its type from step to step.
// Returns the carries after the last step, and [T, ...] for each output [...] of the body; with `reverse`,
// element t still belongs to element t of the xs. If T is 0, returns the given carries. Any dtype.
//
// The body may use any other node of the graph, and parameters. Nodes that depend on neither carries nor xs
// are computed once, before the loop. A random op draws new numbers in each step, unless `same_draws`. The size of the
// program does not depend on T. The gradient is a scan in the opposite direction. It reads values that the
// forward scan has kept for all steps, or computes them again. It sums the gradient of a value that the body
// uses in each step, in the order of its own steps. Unless values are computed again, the gradient of a matrix that the
// body multiplies once, by a matrix that differs from step to step, is a single product over all steps, after the loop.
//
// Throws UserError if there are neither xs nor carries, if extents of xs and `steps` differ, if a carry
// changes its type or its number, if the body updates a buffer or sums over ranks.
PLEXAURA_API ScanStep scan(const std::vector<Node>& xs, const std::vector<Node>& carries,
                           const ScanBody& body, ScanOptions options = {},
                           std::source_location where = std::source_location::current());

}  // namespace plexaura
