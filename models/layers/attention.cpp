#include "models/layers/attention.h"

#include <fmt/format.h>
#include <limits>

#include "core/base/error.h"
#include "core/ops/attention.h"
#include "core/ops/binary.h"
#include "core/ops/constants.h"
#include "core/ops/logic.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"

namespace plexaura::layers {

namespace {

std::int64_t checked_heads(std::int64_t width, std::int64_t heads) {
  if (width < 1 || heads < 1 || width % heads != 0)
    throw UserError(fmt::format(
        "attention over {} features cannot have {} heads; the heads must divide the features evenly", width,
        heads));
  return heads;
}

Node causal_mask(Graph& graph, std::int64_t queries, std::int64_t keys) {
  return ge(reshape(iota(graph, queries), {queries, 1}), reshape(iota(graph, keys), {1, keys}));
}

// Throws UserError unless the mask is bool [samples, keys].
void check_keys_mask(const Node& mask, const Operand& query, std::int64_t samples, std::int64_t keys) {
  const TensorType type{DType::boolean, {samples, keys}};
  if (mask.is_empty() || mask.type() == type) return;
  throw UserError(fmt::format("{}: attention is given the mask of keys {}; it takes {}, a value for each key",
                              to_string(query.node().graph().origin_of(query.where())),
                              to_string(mask.type()), to_string(type)));
}

// Returns a mask that permits what both `condition` (bool) and `mask` permit. `mask` may be empty, which
// permits everything.
Node both(const Node& condition, const Node& mask) {
  if (mask.is_empty()) return condition;
  if (mask.dtype() == DType::boolean) return logical_and(condition, mask);
  return where(condition, mask, -std::numeric_limits<double>::infinity());
}

}  // namespace

AttentionCache::AttentionCache(std::int64_t samples, std::int64_t positions, std::int64_t width,
                               std::int64_t heads)
    : keys_({samples, heads, positions, width / checked_heads(width, heads)}, Initialiser::zeros(),
            ParameterRole::buffer),
      values_(keys_.shape(), Initialiser::zeros(), ParameterRole::buffer) {}

void AttentionCache::members(MemberVisitor& visit) {
  visit("keys", keys_);
  visit("values", values_);
}

MultiheadAttention::MultiheadAttention(std::int64_t width, std::int64_t heads,
                                       MultiheadAttentionOptions options)
    : width_(width),
      heads_(checked_heads(width, heads)),
      dropout_(options.dropout),
      in_proj_weight_({3 * width, width}, Initialiser::glorot_uniform()),
      out_proj_(width, width, {.bias = options.bias, .bias_start = Initialiser::zeros()}) {
  if (options.bias) in_proj_bias_ = std::make_unique<Parameter>(Shape{3 * width}, Initialiser::zeros());
}

void MultiheadAttention::members(MemberVisitor& visit) {
  visit("in_proj_weight", in_proj_weight_);
  visit("in_proj_bias", in_proj_bias_);
  visit("out_proj", out_proj_);
}

Node MultiheadAttention::operator()(Operand query, Operand key, Operand value,
                                    const AttentionMasks& masks) const {
  const auto call = enter_unseen(query);
  check(query, "query");
  check(key, "key");
  check(value, "value");
  check_keys_mask(masks.keys, query, key.node().shape()[0], key.node().shape()[1]);
  const bool one_memory = same_value(key.node(), value.node());
  if (one_memory && same_value(query.node(), key.node())) {
    const Node all = projected(query, 0, 3);
    return attended(in_heads(all, 0), in_heads(all, 1), in_heads(all, 2), masks);
  }
  const Node queries = in_heads(projected(query, 0, 1), 0);
  if (one_memory) {
    const Node memory = projected(key, 1, 2);
    return attended(queries, in_heads(memory, 0), in_heads(memory, 1), masks);
  }
  return attended(queries, in_heads(projected(key, 1, 1), 0), in_heads(projected(value, 2, 1), 0), masks);
}

Node MultiheadAttention::next(Operand x, const AttentionCache& cache, Operand position) const {
  const auto call = enter_unseen(x);
  check(x, "next position");
  const Shape& cached = cache.keys().shape();
  const std::int64_t positions = cached[2];
  if (x.node().shape()[1] != 1 || cached != Shape{x.node().shape()[0], heads_, positions, width_ / heads_})
    throw UserError(fmt::format(
        "{}: attention with a cache {} is given {}; it takes one position of each sequence of the cache",
        to_string(x.node().graph().origin_of(x.where())), to_string(cached), to_string(x.node().type())));
  Graph& graph = x.node().graph();
  const Node all = projected(x, 0, 3);
  const Node each = iota(graph, positions);
  const Node is_here = reshape(eq(each, position), {positions, 1});
  const auto extended = [&](const Parameter& buffer, std::int64_t part) {
    const Node before = buffer.in(graph);
    const Node after = where(is_here, in_heads(all, part), before);
    graph.update(before, after);
    return after;
  };
  const Node keys = extended(cache.keys(), 1);
  const Node values = extended(cache.values(), 2);
  const Node seen = logical_and(le(each, position), lt(position, positions));
  return attended(in_heads(all, 0), keys, values, {.mask = reshape(seen, {1, positions})});
}

void MultiheadAttention::check(const Operand& x, const char* name) const {
  const Shape& shape = x.node().shape();
  if (shape.rank() != 3 || shape[2] != width_)
    throw UserError(fmt::format("{}: attention is given the {} {}; it takes [N, positions, {}]",
                                to_string(x.node().graph().origin_of(x.where())), name,
                                to_string(x.node().type()), width_));
}

// Multiplies x by `count` parts of in_proj_weight, from part `first` on. The parts are those of queries, keys
// and values. Returns [N, L, count width].
Node MultiheadAttention::projected(const Operand& x, std::int64_t first, std::int64_t count) const {
  const auto part = [&](const Parameter& all) {
    const Node whole = all.in(x.node().graph());
    return count == 3 ? whole : slice(whole, {.start = first * width_, .stop = (first + count) * width_});
  };
  const Node product = matmul(x, part(in_proj_weight_), {.transpose_b = true});
  return in_proj_bias_ ? product + part(*in_proj_bias_) : product;
}

// Takes part number `part` of [N, L, parts width]. Returns it as [N, heads, L, width / heads].
Node MultiheadAttention::in_heads(const Node& x, std::int64_t part) const {
  const Shape shape = x.shape();
  const Node own =
      shape[2] == width_ ? x : slice(x, {.axis = 2, .start = part * width_, .stop = (part + 1) * width_});
  return permute(reshape(own, {shape[0], shape[1], heads_, width_ / heads_}), {0, 2, 1, 3});
}

Node MultiheadAttention::attended(const Node& query, const Node& key, const Node& value,
                                  const AttentionMasks& masks) const {
  const std::int64_t samples = query.shape()[0], queries = query.shape()[2], keys = key.shape()[2];
  Node mask = masks.mask;
  if (!masks.keys.is_empty()) mask = both(reshape(masks.keys, {samples, 1, 1, keys}), mask);
  const bool only_causal = masks.is_causal && mask.is_empty();
  if (masks.is_causal && !only_causal) mask = both(causal_mask(query.graph(), queries, keys), mask);
  const Node mixed =
      mask.is_empty()
          ? scaled_dot_product_attention(query, key, value, {.is_causal = only_causal, .dropout = dropout_})
          : scaled_dot_product_attention(query, key, value, mask, {.dropout = dropout_});
  return out_proj_(reshape(permute(mixed, {0, 2, 1, 3}), {samples, queries, width_}));
}

}  // namespace plexaura::layers
