#include "core/ops/attention.h"

#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>

#include "core/graph/graph.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::attention_test {

namespace {

using reference::at;
using reference::Index;

// The number that is added to the product of a query and a key; -infinity if the query may not attend to the
// key.
using Added = std::function<double(const Index& batch, std::int64_t query, std::int64_t key)>;
// The factor of an attention weight.
using Kept = std::function<double(const Index& batch, std::int64_t query, std::int64_t key)>;

Index joined(const Index& batch, std::int64_t row, std::int64_t column) {
  Index index = batch;
  index.push_back(row);
  index.push_back(column);
  return index;
}

// All operands have the same axes before the last two.
Tensor expected_attention(const Tensor& query, const Tensor& key, const Tensor& value, double scale,
                          const Added& added, const Kept& kept) {
  Index batches = query.shape().extents();
  const std::int64_t features = batches.back();
  const std::int64_t queries = *(batches.end() - 2);
  const std::int64_t keys = *(key.shape().extents().end() - 2);
  const std::int64_t values = value.shape().extents().back();
  batches.resize(batches.size() - 2);
  Tensor y = reference::zeros(Shape(joined(batches, queries, values)));
  reference::for_each_index(Shape(batches), [&](const Index& batch) {
    for (std::int64_t i = 0; i < queries; ++i) {
      std::vector<double> weights;
      double total = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        double product = 0;
        for (std::int64_t e = 0; e < features; ++e)
          product += at(query, joined(batch, i, e)) * at(key, joined(batch, j, e));
        weights.push_back(std::exp(product * scale + added(batch, i, j)));
        total += weights.back();
      }
      for (std::int64_t j = 0; j < keys; ++j)
        for (std::int64_t v = 0; v < values; ++v)
          at(y, joined(batch, i, v)) += weights[static_cast<std::size_t>(j)] / total * kept(batch, i, j) *
                                        at(value, joined(batch, j, v));
    }
  });
  return y;
}

double nothing(const Index&, std::int64_t, std::int64_t) { return 0; }
double all(const Index&, std::int64_t, std::int64_t) { return 1; }
double no_later_key(const Index&, std::int64_t query, std::int64_t key) {
  return key <= query ? 0 : -HUGE_VAL;
}

OpCase attending(const std::string& name, Shape query, Shape key, Shape value, AttentionOptions options) {
  const auto features = static_cast<double>(query.extents().back());
  return {"scaled_dot_product_attention, " + name,
          "softmax",
          [=](Graph&, auto in) {
            return std::vector{scaled_dot_product_attention(in[0], in[1], in[2], options)};
          },
          {{std::move(query)}, {std::move(key)}, {std::move(value)}},
          [=](auto in) {
            return std::vector{expected_attention(in[0], in[1], in[2],
                                                  options.scale.value_or(1 / std::sqrt(features)),
                                                  options.is_causal ? no_later_key : nothing, all)};
          }};
}

OpCase masked(const std::string& name, CaseInput mask, const std::function<double(double)>& added) {
  return {
      "scaled_dot_product_attention, " + name,
      "softmax",
      [](Graph&, auto in) { return std::vector{scaled_dot_product_attention(in[0], in[1], in[2], in[3])}; },
      {{{2, 3, 4}}, {{2, 5, 4}}, {{2, 5, 2}}, std::move(mask)},
      [=](auto in) {
        const Added of_mask = [&](const Index&, std::int64_t query, std::int64_t key) {
          return added(at(in[3], query, key));
        };
        return std::vector{expected_attention(in[0], in[1], in[2], 0.5, of_mask, all)};
      }};
}

constexpr StepBlock block_of_dropout{.step = 3, .seed = 5, .first_sample = 0};

OpCase dropping() {
  OpCase op_case = attending("dropout", {2, 3, 4}, {2, 5, 4}, {2, 5, 2}, {.dropout = 0.4});
  op_case.expected = [](auto in) {
    const Tensor mask =
        reference::dropout_mask({2, 3, 5}, {.p = 0.4}, block_of_dropout, Graph().next_stream());
    const Kept kept = [&](const Index& batch, std::int64_t query, std::int64_t key) {
      return at(mask, batch[0], query, key) / 0.6;
    };
    return std::vector{expected_attention(in[0], in[1], in[2], 0.5, nothing, kept)};
  };
  op_case.block = block_of_dropout;
  return op_case;
}

Tensor expected_rotation(const Tensor& x, const RotaryOptions& options) {
  Tensor y = reference::zeros(x.shape());
  const std::int64_t features = x.shape().extents().back();
  const std::int64_t pairs = features / 2;
  reference::for_each_index(x.shape(), [&](const Index& to) {
    const std::int64_t feature = to.back();
    const std::int64_t pair = options.interleaved ? feature / 2 : feature % pairs;
    const bool is_second = options.interleaved ? feature % 2 == 1 : feature >= pairs;
    Index other = to;
    other.back() += (is_second ? -1 : 1) * (options.interleaved ? 1 : pairs);
    const double angle =
        static_cast<double>(*(to.end() - 2) + options.offset) *
        std::pow(options.base, -2 * static_cast<double>(pair) / static_cast<double>(features));
    at(y, to) = at(x, to) * std::cos(angle) + (is_second ? 1 : -1) * at(x, other) * std::sin(angle);
  });
  return y;
}

OpCase rotated(const std::string& name, const std::string& op, Shape x, RotaryOptions options) {
  return {"rotary, " + name,
          op,
          [=](Graph&, auto in) { return std::vector{rotary(in[0], options)}; },
          {{std::move(x)}},
          [=](auto in) { return std::vector{expected_rotation(in[0], options)}; }};
}

const Cases cases({
    attending("plain", {2, 3, 4}, {2, 5, 4}, {2, 5, 2}, {}),
    attending("heads", {2, 2, 3, 2}, {2, 2, 3, 2}, {2, 2, 3, 2}, {.scale = 0.3}),
    attending("causal", {2, 4, 3}, {2, 4, 3}, {2, 4, 3}, {.is_causal = true}),
    attending("causal, more keys", {3, 2}, {5, 2}, {5, 3}, {.is_causal = true}),
    masked("a mask of truths", {{3, 5}, these({1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1}), DType::boolean},
           [](double may) { return may != 0 ? 0 : -HUGE_VAL; }),
    masked("a mask that is added", {{3, 5}}, [](double number) { return number; }),
    dropping(),
    rotated("halves", "concat", {2, 3, 4}, {}),
    rotated("neighbours", "concat", {3, 6}, {.base = 100, .offset = 2, .interleaved = true}),
});

using Extents = std::vector<std::int64_t>;

WrongCase refused(const std::string& name, const Extents& query, const Extents& key, const Extents& value,
                  std::vector<std::string> words) {
  return {"attention, " + name, "scaled_dot_product_attention",
          [=](Graph& graph) {
            const auto input = [&](const char* of, const Extents& extents) {
              return graph.input(of, {DType::float32, Shape(extents)});
            };
            scaled_dot_product_attention(input("q", query), input("k", key), input("v", value));
          },
          std::move(words)};
}

WrongCase refused(const std::string& name, DType mask, AttentionOptions options,
                  std::vector<std::string> words) {
  return {"attention, " + name, "scaled_dot_product_attention",
          [=](Graph& graph) {
            const Node x = graph.input("x", {DType::float32, {3, 2}});
            scaled_dot_product_attention(x, x, x, graph.input("m", {mask, {3, 3}}), options);
          },
          std::move(words)};
}

const WrongCases wrong({
    refused("a vector", {4}, {5, 4}, {5, 2}, {"two axes or more"}),
    refused("other features", {3, 4}, {5, 3}, {5, 2}, {"query and key must have equally many features"}),
    refused("other positions", {3, 4}, {5, 4}, {4, 2}, {"key and value must have equally many positions"}),
    refused("a mask of integers", DType::int32, {}, {"mask must be bool or have the query's dtype"}),
    refused("a mask and causal", DType::boolean, {.is_causal = true}, {"not both"}),
    {"attention, a mask of samples instead of positions",
     "scaled_dot_product_attention",
     [](Graph& graph) {
       const Node x = graph.input("x", {DType::float32, {2, 3, 4}});
       const Node keys = graph.input("k", {DType::float32, {2, 5, 4}});
       scaled_dot_product_attention(x, keys, keys, graph.input("m", {DType::boolean, {2, 5}}));
     },
     {"the mask must have the shape [..., 3, 5]", "reshape it"}},
    {"attention, a mask of other keys",
     "scaled_dot_product_attention",
     [](Graph& graph) {
       const Node x = graph.input("x", {DType::float32, {3, 4}});
       const Node keys = graph.input("k", {DType::float32, {5, 4}});
       scaled_dot_product_attention(x, keys, keys, graph.input("m", {DType::float32, {3}}));
     },
     {"the mask must have the shape [..., 3, 5]"}},
    {"attention, an infinite scale",
     "scaled_dot_product_attention",
     [](Graph& graph) {
       const Node x = graph.input("x", {DType::float32, {3, 2}});
       scaled_dot_product_attention(x, x, x, {.scale = std::numeric_limits<double>::infinity()});
     },
     {"the scale must be a finite number"}},
    {"attention, dropout of everything",
     "dropout",
     [](Graph& graph) {
       const Node x = graph.input("x", {DType::float32, {3, 2}});
       scaled_dot_product_attention(x, x, x, {.dropout = 1});
     },
     {"less than 1", "not 1"}},
    {"rotary of an odd number of features",
     "rotary",
     [](Graph& graph) {
       rotary(graph.input("x", {DType::float32, {3, 5}}));
     },
     {"even number of features"}},
    {"rotary without base",
     "rotary",
     [](Graph& graph) {
       rotary(graph.input("x", {DType::float32, {3, 4}}), {.base = 0});
     },
     {"base must be a finite number above 0, not 0"}},
    {"rotary with a negative base",
     "rotary",
     [](Graph& graph) {
       rotary(graph.input("x", {DType::float32, {3, 4}}), {.base = -2});
     },
     {"base must be a finite number above 0, not -2"}},
});

}  // namespace

TEST_CASE("attention: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("attention: what it refuses") { check_all(wrong); }

TEST_CASE("attention by hand") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 1}});
  const Node mean = scaled_dot_product_attention(x, x, x, {.scale = 0.0});
  const Node causal = scaled_dot_product_attention(x, x, x, {.is_causal = true, .scale = 0.0});
  const auto results = Runner(graph, {mean, causal}, test_backend())({Tensor::of<double>({2, 1}, {1, 5})});
  check_close(results[0], {3, 3});
  check_close(results[1], {1, 3});
}

}  // namespace plexaura::testing::attention_test
