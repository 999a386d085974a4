// Losses.

#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

void check_labels(const Call& call) {
  const Shape& shape = call[0].shape();
  if (shape.rank() < 2)
    throw UserError(fmt::format("its values must have the axes N and C, not {}", to_string(shape)));
  std::vector<std::int64_t> expected = shape.extents();
  expected.erase(expected.begin() + 1);
  if (call[1].shape() != Shape(expected))
    throw UserError(fmt::format("labels of {} must have the shape {}, not {}", to_string(shape),
                                to_string(Shape(expected)), to_string(call[1].shape())));
  if (call.has(2) && call[2].shape() != Shape{shape[1]})
    throw UserError(fmt::format("there must be one weight for each of the {} classes, not {}", shape[1],
                                to_string(call[2].shape())));
}

// -weights[label] times the logarithm at the label, for logarithms [N, C, ...] and labels [N, ...], reduced. A mean is
// divided by the sum of the weights. Samples with the label ignore_index have the weight 0.
Node loss_at_labels(Call& call, const Node& logarithms) {
  check_labels(call);
  const std::string reduction = call.text("reduction", "mean");
  const Node labels = cast(call[1], DType::int64);
  const DType dtype = logarithms.dtype();
  const bool ignores = call.has_attribute("ignore_index");
  const std::int64_t ignored = call.integer("ignore_index", 0);
  const Node counted = ne(labels, ignored);
  const Node safe = ignores ? where(counted, labels, 0) : labels;
  Node weights = call.has(2) ? gather(call[2], safe) : cast(eq(labels, labels), dtype);
  if (ignores) weights = where(counted, weights, 0);
  const Node chosen = squeeze(take_along_axis(logarithms, unsqueeze(safe, 1), 1), 1);
  const Node losses = -chosen * weights;
  if (reduction == "none") return losses;
  if (reduction == "sum") return sum(losses);
  if (reduction == "mean") return sum(losses) / sum(weights);
  throw UserError(fmt::format("reduction must be none, sum or mean, not '{}'", reduction));
}

std::vector<Node> negative_log_likelihood(Call& call) { return {loss_at_labels(call, call[0])}; }

std::vector<Node> cross_entropy(Call& call) {
  const Node logarithms = log_softmax(call[0], 1);
  return {loss_at_labels(call, logarithms), logarithms};
}

constexpr Row rows_of_losses[] = {
    {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, cross_entropy},
};

}  // namespace

std::span<const Row> loss_rows() { return rows_of_losses; }

}  // namespace plexaura::onnx
