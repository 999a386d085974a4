#include "models/zoo/language_model.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/labels.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "training/data/text/token_windows.h"

namespace plexaura {

namespace {

// The index of each element of the sums.
enum TokenSum : std::size_t { losses_sum, hits_sum, targets_sum };

std::vector<std::pair<std::string, double>> text_figures(std::span<const double> totals, double /*samples*/) {
  const double targets = totals[targets_sum];
  return {{"perplexity", std::exp(totals[losses_sum] / targets)}, {"accuracy", totals[hits_sum] / targets}};
}

// Returns the sums over the positions of a batch. Adds up in float64, so that the division into batches
// changes only the last digits of float64.
Node token_sums(const Node& logits, const Node& labels) {
  const Node losses =
      softmax_cross_entropy(logits, labels, {.reduction = Reduction::none, .ignore = no_target});
  const auto element = [](const Node& x) { return reshape(cast(x, DType::float64), {1}); };
  return concat({element(sum(cast(losses, DType::float64))), element(top_k_correct(logits, labels, 1)),
                 element(sum(cast(ne(labels, no_target), DType::float64)))},
                0);
}

}  // namespace

LossOutputs build_language_model(Operand outputs, Operand targets) {
  const std::int64_t tokens = outputs.node().shape().extents().back();
  const Operand logits{reshape(outputs, {-1, tokens}), outputs.where()};
  const Operand labels{reshape(targets, {-1}), targets.where()};
  const WeightedLoss loss = weighted_cross_entropy(logits, labels, {.ignore = no_target});
  return {.loss = loss.sum,
          .weight = loss.weight,
          .validation = {.sums = token_sums(logits.node(), labels.node()), .values = text_figures}};
}

}  // namespace plexaura
