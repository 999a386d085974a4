// Tests which graphs have regions of attention.

#include "backends/cpu/fast/attention/attention_match.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>

#include "core/autodiff/gradients.h"
#include "core/compile/compile.h"
#include "core/ops/attention.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "tests/backends/cpu/fast/attention_backend.h"

namespace plexaura::testing::attention_match_test {

namespace {

using fast::attention_region;
using fast::AttentionMaskKind;
using fast::AttentionRegion;

constexpr std::int64_t positions = 64;

struct Fixture {
  explicit Fixture(DType type = DType::float32) : dtype(type) {}

  Node input(const char* name, Shape shape = {4, positions, 16}) {
    return graph.input(name, {dtype, std::move(shape)});
  }
  std::vector<Node> gradients(const Node& of, const std::vector<Node>& by) {
    const std::string name = "grad of " + std::to_string(of.id());
    return vjp(std::vector{of}, std::vector{graph.input(name, of.type())}, by);
  }

  // Returns the kinds of the regions of attention of a program, in order.
  std::vector<std::string> kinds(const std::vector<Node>& results, bool optimise = true) {
    std::vector<ProgramOutput> outputs;
    for (const Node& node : results) outputs.push_back({.node = node});
    const auto program = compile(graph, outputs, *backend, {.optimise = optimise});
    std::vector<std::string> found;
    for (const Instruction& instruction : program->instructions)
      if (const auto begin = instruction.name.find("(attention"); begin != std::string::npos)
        found.push_back(instruction.name.substr(begin + 1, instruction.name.size() - begin - 2));
    return found;
  }

  std::shared_ptr<Backend> backend = std::make_shared<AttentionBackend>();
  DType dtype;
  Graph graph;
  Node query = input("query"), key = input("key"), value = input("value");
};

using Kinds = std::vector<std::string>;

}  // namespace

TEST_CASE("the kind of a region names its parts, and is read again") {
  for (const AttentionMaskKind mask : {AttentionMaskKind::none, AttentionMaskKind::bools,
                                       AttentionMaskKind::added, AttentionMaskKind::causal}) {
    const AttentionRegion region{.backward = true, .mask = mask, .drops = true, .value_grad = true};
    const auto found = attention_region(region.kind());
    REQUIRE(found);
    CHECK(found->mask == mask);
    CHECK((found->backward && found->drops && found->value_grad && !found->query_grad));
  }
  CHECK_FALSE(attention_region("softmax"));
}

TEST_CASE("an attention is one region, and its gradient another one") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Fixture at(dtype);
    const Node result = scaled_dot_product_attention(at.query, at.key, at.value);
    CHECK(at.kinds({result}) == Kinds{"attention"});
    CHECK(at.kinds({result}, false).empty());
    std::vector<Node> all = at.gradients(result, {at.query, at.key, at.value});
    CHECK(at.kinds({all[0], all[1]}) == Kinds{"attention_grad of q k"});
    CHECK(at.kinds({all[1]}) == Kinds{"attention_grad of k"});
    all.push_back(result);
    CHECK(at.kinds(all) == Kinds{"attention", "attention_grad of q k v"});
  }
}

TEST_CASE_FIXTURE(Fixture, "regions have the mask and the dropout of the attention") {
  const auto of = [&](const Node& result) {
    std::vector<Node> all = gradients(result, {query, key, value});
    all.push_back(result);
    return kinds(all);
  };
  const Node bools = graph.input("bools", {DType::boolean, {positions, positions}});
  CHECK(of(scaled_dot_product_attention(query, key, value, bools)) ==
        Kinds{"attention+mask", "attention_grad+mask of q k v"});
  CHECK(of(scaled_dot_product_attention(query, key, value, input("added", {positions, positions}))) ==
        Kinds{"attention+added_mask", "attention_grad+added_mask of q k v"});
  CHECK(of(scaled_dot_product_attention(query, key, value, {.is_causal = true, .dropout = 0.1})) ==
        Kinds{"attention+causal+dropout", "attention_grad+causal+dropout of q k v"});
}

TEST_CASE("layers that share the comparison of positions are causal each") {
  for (const bool trains : {false, true}) {
    CAPTURE(trains);
    Fixture at;
    const Node x = at.input("x", {2, 1100, 8});
    const Node once = scaled_dot_product_attention(x, x, x, {.is_causal = true});
    const Node twice = scaled_dot_product_attention(once, x, once, {.is_causal = true});
    if (!trains) {
      CHECK(at.kinds({twice}) == Kinds{"attention+causal", "attention+causal"});
      continue;
    }
    const Kinds found = at.kinds({twice, at.gradients(twice, {x})[0]});
    CHECK(found == Kinds{"attention+causal", "attention+causal", "attention_grad+causal of q k v",
                         "attention_grad+causal of q k v"});
  }
}

TEST_CASE_FIXTURE(Fixture, "heads are permuted before the products") {
  const auto heads = [](const Node& x) { return permute(reshape(x, {4, positions, 2, 8}), {0, 2, 1, 3}); };
  const Node result = scaled_dot_product_attention(heads(query), heads(key), heads(value));
  CHECK(kinds({result, gradients(result, {query})[0]}) == Kinds{"attention", "attention_grad of q"});
}

TEST_CASE_FIXTURE(Fixture, "no region hides values that others read") {
  const Node weights = softmax(matmul(query, key, {.transpose_b = true}));
  const Node result = matmul(weights, value);
  CHECK(kinds({result}) == Kinds{"attention"});
  CHECK(kinds({result, weights}).empty());
  CHECK(kinds({result, weights, gradients(result, {query})[0]}).empty());
}

TEST_CASE_FIXTURE(Fixture, "an added mask with a gradient is computed op by op") {
  const Node mask = input("added", {positions, positions});
  const Node result = scaled_dot_product_attention(query, key, value, mask);
  std::vector<Node> all = gradients(result, {query, key, value, mask});
  all.push_back(result);
  CHECK(kinds(all).empty());
}

TEST_CASE_FIXTURE(Fixture, "other graphs have no regions of attention") {
  const Node scores = matmul(query, key, {.transpose_b = true});
  const Node flags = graph.input("flags", {DType::boolean, {positions, positions}});
  CHECK(kinds({matmul(softmax(scores, -2), value)}).empty());
  CHECK(kinds({matmul(softmax(where(flags, scores, -1e9)), value)}).empty());
  CHECK(kinds({matmul(softmax(scores), input("square", {4, 16, positions}), {.transpose_b = true})}).empty());
  // One key matrix for all pairs, and a mask with more pairs than the scores.
  CHECK(kinds({matmul(softmax(matmul(query, input("one", {positions, 16}), {.transpose_b = true})), value)})
            .empty());
  const Node wide = input("wide", {3, 4, positions, positions});
  CHECK(kinds({matmul(softmax(scores + wide), value)}).empty());
  // A region that would read one of its own nodes.
  const Node square =
      matmul(input("a", {4, positions, 16}), input("b", {4, positions, 16}), {.transpose_b = true});
  CHECK(kinds({matmul(softmax(square), softmax(square))}).empty());
  CHECK(kinds({matmul(softmax(square + square), value)}).empty());
}

TEST_CASE_FIXTURE(Fixture, "a constant mask is causal only along queries and keys") {
  const auto mask = [&](Shape shape, std::int64_t rows) {
    Tensor flags({DType::boolean, std::move(shape)});
    const auto all = flags.as<bool>();
    const std::int64_t columns = std::ssize(all) / rows;
    for (std::int64_t i = 0; i < std::ssize(all); ++i)
      all[static_cast<std::size_t>(i)] = i % columns <= i / columns;
    return graph.constant(flags);
  };
  const auto kinds_with = [&](const Node& flags, const Shape& shape) {
    const Node x = graph.input("x" + std::to_string(graph.size()), {dtype, shape});
    return kinds({scaled_dot_product_attention(x, x, x, flags)});
  };
  CHECK(kinds_with(mask({8, 8}, 8), {3, 8, 5}) == Kinds{"attention+causal"});
  CHECK(kinds_with(mask({1, 8, 8}, 8), {3, 8, 5}) == Kinds{"attention+causal"});
  CHECK(kinds_with(mask({8, 1, 8}, 8), {8, 8, 5}) == Kinds{"attention+mask"});
  CHECK(kinds_with(mask({8}, 1), {3, 8, 5}) == Kinds{"attention+mask"});
  CHECK(kinds_with(mask({}, 1), {3, 1, 5}) == Kinds{"attention+mask"});
}

TEST_CASE_FIXTURE(Fixture, "the gradient of the weights may stand before the attention") {
  const Node of_weights = matmul(input("grad"), value, {.transpose_b = true});
  const Node weights = softmax(matmul(query, key, {.transpose_b = true}));
  std::vector<Node> all = vjp(std::vector{weights}, std::vector{of_weights}, std::vector{query, key});
  all.push_back(matmul(weights, value));
  Kinds found = kinds(all);
  std::ranges::sort(found);
  CHECK(found == Kinds{"attention", "attention_grad of q k"});
}

TEST_CASE_FIXTURE(Fixture, "a dropout and a gradient of another probability have no region") {
  const Node weights = dropout(softmax(matmul(query, key, {.transpose_b = true})), {.p = 0.5});
  const Node flags = Node(graph, {weights.id(), 1});
  const Node of_weights = matmul(input("grad"), value, {.transpose_b = true});
  for (const double p : {0.5, 0.1}) {
    CAPTURE(p);
    const Node of_softmax = dropout_grad(of_weights, flags, p);
    std::vector<Node> all = vjp(std::vector{Node(graph, graph.record(weights.id()).inputs[0])},
                                std::vector{of_softmax}, std::vector{query});
    all.push_back(matmul(weights, value));
    CHECK(std::ssize(kinds(all)) == (p == 0.5 ? 2 : 0));
  }
}

}  // namespace plexaura::testing::attention_match_test
