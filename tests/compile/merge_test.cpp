#include <doctest/doctest.h>

#include "core/compile/passes.h"
#include "core/ops/all_reduce.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"

namespace plexaura::testing::merge_test {

namespace {

const TensorType images{DType::float32, {2, 4, 6, 6}};

// Returns true if merging makes one node of the two.
bool merges(Graph& graph, const Node& a, const Node& b) {
  const std::vector<Value> roots{a.value(), b.value()};
  const PassGraph merged = merge(copy(graph, roots));
  return merged.roots[0] == merged.roots[1];
}

struct Fixture {
  Graph graph;
  Node x = graph.input("x", images);
  Node w = graph.input("w", {DType::float32, {4, 4, 3, 3}});
  Node m = graph.input("m", {DType::float32, {6, 6}});
  Node s = graph.input("s", {DType::float32, {4}});
  bool one(const Node& a, const Node& b) { return merges(graph, a, b); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "equal ops of equal inputs become one, all their outputs too") {
  CHECK(one(exp(x), exp(x)));
  CHECK(one(tanh(exp(x) * 2), tanh(exp(x) * 2)));
  CHECK(one(conv2d(x, w), conv2d(x, w)));
  const BatchNormResult a = batch_norm(x, s, s);
  const BatchNormResult b = batch_norm(x, s, s);
  CHECK(one(a.y, b.y));
  CHECK(one(a.variance, b.variance));
  CHECK(!one(a.mean, b.variance));
  CHECK(one(graph.constant(Tensor::scalar(2.F)), graph.constant(Tensor::scalar(2.F))));
}

TEST_CASE_FIXTURE(Fixture, "ops that differ in name, in inputs or in the order of inputs stay two") {
  CHECK(!one(exp(x), tanh(x)));
  CHECK(!one(exp(x), exp(x * 2)));
  const Node y = graph.input("y", images);
  CHECK(!one(x - y, y - x));
  CHECK(!one(graph.constant(Tensor::scalar(2.F)), graph.constant(Tensor::scalar(3.F))));
  CHECK(!one(graph.constant(Tensor::scalar(2.F)), graph.constant(Tensor::scalar(2.0))));
  CHECK(!one(graph.constant(Tensor::scalar(0.F)), graph.constant(Tensor::scalar(-0.F))));
}

TEST_CASE_FIXTURE(Fixture, "one option that differs is enough to stay two") {
  CHECK(!one(conv2d(x, w), conv2d(x, w, {.stride = {2, 1}})));
  CHECK(!one(conv2d(x, w, {.stride = {2, 1}}), conv2d(x, w, {.stride = {1, 2}})));
  CHECK(!one(conv2d(x, w, {.padding = {1, 1}}), conv2d(x, w, {.padding = {1, 1}, .dilation = {2, 2}})));
  CHECK(!one(matmul(m, m), matmul(m, m, {.transpose_b = true})));
  CHECK(!one(matmul(m, m, {.transpose_a = true}), matmul(m, m, {.transpose_b = true})));
  CHECK(!one(batch_norm(x, s, s).y, batch_norm(x, s, s, {.epsilon = 1e-6}).y));
  CHECK(!one(max_pool2d(x, {.kernel = {2, 2}}), max_pool2d(x, {.kernel = {2, 2}, .stride = Size2d{2, 1}})));
  CHECK(!one(max_pool2d(x, {.kernel = {2, 2}, .stride = Size2d{2, 2}}),
             max_pool2d(x, {.kernel = {1, 1}, .stride = Size2d{2, 2}})));
  CHECK(!one(max_pool2d(x, {.kernel = {2, 2}}), max_pool2d(x, {.kernel = {2, 2}, .padding = {1, 1}})));
  CHECK(!one(max_pool2d(x, {.kernel = {2, 2}}), avg_pool2d(x, {.kernel = {2, 2}})));
  CHECK(!one(avg_pool2d(x, {.kernel = {2, 2}, .padding = {1, 1}}),
             avg_pool2d(x, {.kernel = {2, 2}, .padding = {1, 1}, .count_include_pad = false})));
  CHECK(!one(sum(m, {.axes = {0}}), sum(m, {.axes = {1}})));
  CHECK(!one(sum(m), mean(m)));
  CHECK(!one(permute(m, {0, 1}), permute(m, {1, 0})));
  CHECK(!one(softmax(m, 0), softmax(m, 1)));
  CHECK(!one(cast(m, DType::float64), cast(m, DType::float16)));
  const Node labels = graph.input("labels", {DType::int64, {6}});
  CHECK(!one(softmax_cross_entropy(m, labels),
             softmax_cross_entropy(m, labels, {.reduction = Reduction::sum})));
}

TEST_CASE_FIXTURE(Fixture, "random ops are draws and never merge, nor do ops of all ranks") {
  CHECK(!one(dropout(x, {.p = 0.5}), dropout(x, {.p = 0.5})));
  CHECK(!one(all_reduce_sum(x), all_reduce_sum(x)));
}

TEST_CASE_FIXTURE(Fixture, "step scalars merge by which they are") {
  const auto scalar = [&](StepScalar which, DType dtype = DType::float32) {
    return graph.step_scalar(which, dtype);
  };
  CHECK(one(scalar(StepScalar::step), scalar(StepScalar::step)));
  CHECK(!one(scalar(StepScalar::step), scalar(StepScalar::stop)));
  CHECK(!one(scalar(StepScalar::step), scalar(StepScalar::step, DType::float64)));
  const auto slice = [&](std::int64_t state, std::int64_t offset) {
    return graph.arena_slice({ArenaKind::state, state, offset, 16}, DType::float32);
  };
  CHECK(!one(slice(0, 0), slice(1, 0)));
  CHECK(!one(slice(0, 0), slice(0, 16)));
}

}  // namespace plexaura::testing::merge_test
