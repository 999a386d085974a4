#include "core/ops/attention.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/concat.h"
#include "core/ops/dropout.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr auto attention = "scaled_dot_product_attention";

std::int64_t extent_from_end(const Node& x, std::int64_t axis) { return x.shape()[x.shape().rank() - axis]; }

void require_sequences(const Operand& query, const Operand& key, const Operand& value,
                       const AttentionOptions& options) {
  const auto require = [&](bool holds, const std::string& rule) {
    require_that(holds, attention, {query, key, value}, rule);
  };
  for (const Operand* operand : {&query, &key, &value}) {
    require_floating_operand(attention, *operand);
    require(operand->node().shape().rank() >= 2,
            "query, key and value need two axes or more: the positions and the features");
    require(operand->node().dtype() == query.node().dtype(),
            "query, key and value must have one dtype; use cast()");
  }
  require(extent_from_end(query.node(), 1) == extent_from_end(key.node(), 1),
          "query and key must have equally many features, their last axis");
  require(extent_from_end(key.node(), 2) == extent_from_end(value.node(), 2),
          "key and value must have equally many positions, their last axis but one");
  require(!options.scale || std::isfinite(*options.scale), "the scale must be a finite number");
}

// The mask and the scores [..., L, S] broadcast.
void require_fitting_mask(const Operand& query, const Operand& key, const Operand& value,
                          const Operand& mask) {
  const std::int64_t queries = extent_from_end(query.node(), 2);
  const std::int64_t keys = extent_from_end(key.node(), 2);
  const auto fits = [&](std::int64_t axis, std::int64_t extent) {
    if (mask.node().shape().rank() < axis) return true;
    const std::int64_t own = extent_from_end(mask.node(), axis);
    return own == 1 || own == extent;
  };
  require_that(
      fits(1, keys) && fits(2, queries), attention, {query, key, value, mask},
      fmt::format("the mask must have the shape [..., {}, {}], positions of the query and of the key, "
                  "where an extent may also be 1; reshape it",
                  queries, keys));
}

Node positions(Graph& graph, std::int64_t count, std::vector<std::int64_t> extents) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return graph.constant(Tensor::of<std::int64_t>(Shape(std::move(extents)), numbers));
}

Node causal_mask(Graph& graph, std::int64_t queries, std::int64_t keys) {
  return ge(positions(graph, queries, {queries, 1}), positions(graph, keys, {1, keys}));
}

Node attended(const Node& query, const Node& key, const Node& value, const std::optional<Node>& mask,
              const AttentionOptions& options) {
  const auto features = static_cast<double>(extent_from_end(query, 1));
  const double scale = options.scale.value_or(1 / std::sqrt(features));
  const DType dtype = query.dtype();
  Node scores = matmul(query * scale, key, {.transpose_b = true});
  scores = cast(scores, wide_dtype_of(query));
  if (mask)
    scores = mask->dtype() == DType::boolean ? where(*mask, scores, -infinity)
                                             : scores + cast(*mask, scores.dtype());
  const Node weights = dropout(cast(softmax(scores), dtype), {.p = options.dropout});
  return matmul(weights, value);
}

// cos and sin of the angles of each position and pair.
struct Angles {
  Node cosine;
  Node sine;
};

Angles angles_of(Graph& graph, std::int64_t length, std::int64_t pairs, DType dtype,
                 const RotaryOptions& options) {
  std::vector<double> cosine;
  std::vector<double> sine;
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double rate = std::pow(options.base, -static_cast<double>(i) / static_cast<double>(pairs));
      const double angle = static_cast<double>(t + options.offset) * rate;
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  const auto constant = [&](const std::vector<double>& values) {
    return cast(graph.constant(Tensor::of<double>({length, pairs}, values)), dtype);
  };
  return {constant(cosine), constant(sine)};
}

void require_pairs(const Operand& x, const RotaryOptions& options) {
  require_floating_operand("rotary", x);
  const Shape shape = x.node().shape();
  require_that(shape.rank() >= 2, "rotary", {x}, "needs two axes or more: the positions and the features");
  require_that(shape[shape.rank() - 1] % 2 == 0, "rotary", {x},
               "the last axis must have an even number of features, which form pairs");
  require_that(std::isfinite(options.base) && options.base > 0, "rotary", {x},
               fmt::format("the base must be a finite number above 0, not {}", options.base));
}

}  // namespace

Node scaled_dot_product_attention(Operand query, Operand key, Operand value, AttentionOptions options) {
  require_sequences(query, key, value, options);
  const Graph::WithOrigin guard = origin_of_caller(query);
  std::optional<Node> mask;
  if (options.is_causal)
    mask =
        causal_mask(query.node().graph(), extent_from_end(query.node(), 2), extent_from_end(key.node(), 2));
  return attended(query.node(), key.node(), value.node(), mask, options);
}

Node scaled_dot_product_attention(Operand query, Operand key, Operand value, Operand mask,
                                  AttentionOptions options) {
  require_sequences(query, key, value, options);
  const DType dtype = mask.node().dtype();
  require_that(dtype == DType::boolean || dtype == query.node().dtype(), attention, {query, key, value, mask},
               "the mask must be bool or have the query's dtype; use cast()");
  require_fitting_mask(query, key, value, mask);
  require_that(!options.is_causal, attention, {query, key, value, mask},
               "takes a mask or is causal, not both; make the mask causal");
  const Graph::WithOrigin guard = origin_of_caller(query);
  return attended(query.node(), key.node(), value.node(), mask.node(), options);
}

Node rotary(Operand x, RotaryOptions options) {
  require_pairs(x, options);
  const Graph::WithOrigin guard = origin_of_caller(x);
  const Node wide = cast(x.node(), wide_dtype_of(x));
  const Shape shape = wide.shape();
  const std::int64_t pairs = extent_from_end(wide, 1) / 2;
  const Angles angles = angles_of(x.node().graph(), extent_from_end(wide, 2), pairs, wide.dtype(), options);
  const auto half = [&](bool second) {
    if (!options.interleaved)
      return second ? slice(wide, {.axis = -1, .start = pairs}) : slice(wide, {.axis = -1, .stop = pairs});
    return slice(wide, {.axis = -1, .start = second ? 1 : 0, .step = 2});
  };
  const Node a = half(false);
  const Node b = half(true);
  const Node first = a * angles.cosine - b * angles.sine;
  const Node second = b * angles.cosine + a * angles.sine;
  const Node y = options.interleaved ? reshape(stack({first, second}, -1), shape.extents())
                                     : concat({first, second}, -1);
  return cast(y, x.node().dtype());
}

}  // namespace plexaura
