// The operands that ops take: the ranks that are accepted and refused, and the shapes that only a shape rule refuses.

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <memory>

#include "core/ops/activations.h"
#include "core/ops/adaptive_pool.h"
#include "core/ops/arrange.h"
#include "core/ops/attention.h"
#include "core/ops/batch_norm.h"
#include "core/ops/conv1d.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/cummax.h"
#include "core/ops/dropout.h"
#include "core/ops/indexing.h"
#include "core/ops/interpolate.h"
#include "core/ops/labels.h"
#include "core/ops/linear_algebra.h"
#include "core/ops/lp_pool.h"
#include "core/ops/matmul.h"
#include "core/ops/norms.h"
#include "core/ops/ordering.h"
#include "core/ops/pool1d.h"
#include "core/ops/pool2d.h"
#include "core/ops/pool3d.h"
#include "core/ops/random.h"
#include "core/ops/recurrence.h"
#include "core/ops/reorder.h"
#include "core/ops/shared_dropout.h"
#include "core/ops/unfold.h"
#include "core/ops/vector_losses.h"
#include "core/ops/vectors.h"
#include "tests/support/check_bounds.h"

namespace plexaura::testing::operands_test {

namespace {

using namespace bounds;

const std::string of_lines = "needs the axes N, C and L";
const std::string of_images = "needs the axes N, C, H and W";
const std::string of_volumes = "needs the axes N, C, D, H and W";
const std::string square_matrices = "needs square matrices, along the last two axes";
const std::string one_axis = "both must have one axis";
const std::string two_axes = "need two axes or more";

// Operands that a shape rule refuses, though no builder passes them to it. Gradients, programs that are read from a file,
// and ops of other libraries use the ops without a builder.
struct Refused {
  std::shared_ptr<const Op> op;
  std::vector<TensorType> operands;
  std::string rule;
};

template <class SomeOp, class... Options>
std::shared_ptr<const Op> an(Options... options) {
  return std::make_shared<SomeOp>(options...);
}
TensorType floats(Shape shape) { return {DType::float32, std::move(shape)}; }
TensorType indices(Shape shape) { return {DType::int64, std::move(shape)}; }

RandomDraws draws_of(const TensorType& type) {
  RandomDraws draws;
  draws.type = type;
  return draws;
}

const std::string from_the_front = "the axis of this op must count from the front";
const std::string scattered = "indices and updates must have one shape, which is that of x but for the axis";
const CrossEntropyOptions each{.reduction = Reduction::none};

const std::vector<Refused> shape_rules{
    {an<Scatter>(AlongAxisOptions{0}), {floats({4, 3}), indices({2, 3}), floats({2, 4})}, scattered},
    {an<Scatter>(AlongAxisOptions{0}), {floats({4, 3}), indices({2, 2}), floats({2, 2})}, scattered},
    {an<Scatter>(AlongAxisOptions{1}), {floats({4, 3}), indices({2, 3}), floats({2, 3})}, scattered},
    {an<Scatter>(AlongAxisOptions{-1}), {floats({4, 3}), indices({4, 3}), floats({4, 3})}, from_the_front},
    {an<TakeAlongAxis>(AlongAxisOptions{-1}), {floats({4, 3}), indices({4, 3})}, from_the_front},
    {an<LinearRecurrence>(RecurrenceOptions{.axis = -1}), {floats({4}), floats({4})}, from_the_front},
    {an<ArgCumMax>(ArgCumMaxOptions{.axis = -1}), {floats({4})}, from_the_front},
    {an<Unfold>(UnfoldOptions{.axis = -1}), {floats({4})}, from_the_front},
    {an<SoftmaxCrossEntropy>(CrossEntropyOptions{.ignore = 1}),
     {floats({4, 3}), indices({4})},
     "a mean that ignores a label has no op of its own"},
    {an<SoftmaxCrossEntropyGrad>(each),
     {floats({4, 3}), indices({4}), floats({4, 2}), floats({4})},
     "the probabilities must have the type and shape of the logits"},
    {an<SoftmaxCrossEntropyGrad>(each),
     {floats({4, 3}), indices({4}), floats({4, 3}), floats({})},
     "the gradient must have the type and shape of the loss"},
    {an<ArgSort>(ArgSortOptions{}), {floats({})}, "needs an axis to order"},
    {an<ArgSort>(ArgSortOptions{.count = -1}), {floats({3})}, "an axis of 3 has no -1 first elements"},
    {an<ArgSort>(ArgSortOptions{.count = 4}), {floats({3})}, "an axis of 3 has no 4 first elements"},
    {an<DropoutOp>(DropoutDraws{}),
     {floats({4}), indices({2})},
     "the second operand must be the step scalar 'random'"},
    {an<RandomValues>(RandomValues::Kind::normal, draws_of(floats({2}))),
     {indices({2})},
     "the operand must be the step scalar 'random'"},
    {an<Reorder>(Layout::row_major(2)), {floats({2, 3}), floats({2, 3})}, "takes 1 inputs and was given 2"},
    {an<Reorder>(Layout::row_major(2)), {}, "takes 1 inputs and was given 0"},
    {an<Reorder>(Layout::row_major(2)),
     {floats({2})},
     "the layout has 2 axes; it must have as many as the value"},
};

}  // namespace

TEST_CASE("ranks of the operands of convolutions and pools") {
  check_bounds("conv2d", {4}, {3, 5}, of_images,
               [](auto& g, auto n) { conv2d(of_rank(g, n), of_rank(g, 4)); });
  check_bounds("conv2d", {4}, {3, 5}, of_images,
               [](auto& g, auto n) { conv2d(of_rank(g, 4), of_rank(g, n)); });
  check_bounds("conv3d", {5}, {4, 6}, of_volumes,
               [](auto& g, auto n) { conv3d(of_rank(g, n), of_rank(g, 5)); });
  check_bounds("conv3d", {5}, {4, 6}, of_volumes,
               [](auto& g, auto n) { conv3d(of_rank(g, 5), of_rank(g, n)); });
  check_bounds("max_pool1d", {3}, {2, 4}, of_lines,
               [](auto& g, auto n) { max_pool1d(of_rank(g, n), {.kernel = 2}); });
  check_bounds("avg_pool1d", {3}, {2, 4}, of_lines,
               [](auto& g, auto n) { avg_pool1d(of_rank(g, n), {.kernel = 2}); });
  check_bounds("adaptive_max_pool1d", {3}, {2, 4}, of_lines,
               [](auto& g, auto n) { adaptive_max_pool1d(of_rank(g, n), 2); });
  check_bounds("adaptive_avg_pool1d", {3}, {2, 4}, of_lines,
               [](auto& g, auto n) { adaptive_avg_pool1d(of_rank(g, n), 2); });
  check_bounds("avg_pool1d", {3}, {2, 4}, of_lines,
               [](auto& g, auto n) { lp_pool1d(of_rank(g, n), {.kernel = 2}); });
  check_bounds("avg_pool2d", {4}, {3, 5}, of_images,
               [](auto& g, auto n) { avg_pool2d(of_rank(g, n), {.kernel = 2}); });
  check_bounds("adaptive_max_pool2d", {4}, {3, 5}, of_images, [](auto& g, auto n) {
    adaptive_max_pool2d(of_rank(g, n), {2, 2});
  });
  check_bounds("adaptive_avg_pool2d", {4}, {3, 5}, of_images, [](auto& g, auto n) {
    adaptive_avg_pool2d(of_rank(g, n), {2, 2});
  });
  check_bounds("avg_pool2d", {4}, {3, 5}, of_images,
               [](auto& g, auto n) { lp_pool2d(of_rank(g, n), {.kernel = 2}); });
  check_bounds("max_pool3d", {5}, {4, 6}, of_volumes,
               [](auto& g, auto n) { max_pool3d(of_rank(g, n), {.kernel = 2}); });
  check_bounds("avg_pool3d", {5}, {4, 6}, of_volumes,
               [](auto& g, auto n) { avg_pool3d(of_rank(g, n), {.kernel = 2}); });
  check_bounds("max_pool3d", {5}, {4, 6}, of_volumes, [](auto& g, auto n) {
    adaptive_max_pool3d(of_rank(g, n), {2, 2, 2});
  });
  check_bounds("avg_pool3d", {5}, {4, 6}, of_volumes, [](auto& g, auto n) {
    adaptive_avg_pool3d(of_rank(g, n), {2, 2, 2});
  });
  check_bounds("avg_pool3d", {5}, {4, 6}, of_volumes,
               [](auto& g, auto n) { lp_pool3d(of_rank(g, n), {.kernel = 2}); });
  check_bounds("global_max_pool", {3, 5}, {0, 2}, "needs the axes N, C and at least one more",
               [](auto& g, auto n) { global_max_pool(of_rank(g, n)); });
  check_bounds("global_avg_pool", {3, 5}, {0, 2}, "needs the axes N, C and at least one more",
               [](auto& g, auto n) { global_avg_pool(of_rank(g, n)); });
  check_bounds("conv1d", {3}, {2, 4}, "the input needs the axes N, C and L",
               [](auto& g, auto n) { conv1d(of_rank(g, n), of_rank(g, 3)); });
  check_bounds("conv1d", {3}, {2, 4}, "the weights need the axes O, C / groups and K",
               [](auto& g, auto n) { conv1d(of_rank(g, 3), of_rank(g, n)); });
  check_bounds("conv1d", {3}, {2, 4}, "the weights need the axes O, C / groups and K",
               [](auto& g, auto n) { conv1d(of_rank(g, 3), of_rank(g, n), of_rank(g, 1)); });
  check_bounds("conv_transpose1d", {3}, {2, 4}, "need 3 axes, the last one L",
               [](auto& g, auto n) { conv_transpose1d(of_rank(g, n), of_rank(g, 3)); });
  check_bounds("conv_transpose1d", {3}, {2, 4}, "need 3 axes, the last one L",
               [](auto& g, auto n) { conv_transpose1d(of_rank(g, 3), of_rank(g, n)); });
  check_bounds("conv_transpose2d", {4}, {3, 5}, "need 4 axes, the last ones HW",
               [](auto& g, auto n) { conv_transpose2d(of_rank(g, n), of_rank(g, 4)); });
  check_bounds("conv_transpose2d", {4}, {3, 5}, "need 4 axes, the last ones HW",
               [](auto& g, auto n) { conv_transpose2d(of_rank(g, 4), of_rank(g, n)); });
  check_bounds("conv_transpose3d", {5}, {4, 6}, "need 5 axes, the last ones DHW",
               [](auto& g, auto n) { conv_transpose3d(of_rank(g, n), of_rank(g, 5)); });
  check_bounds("conv_transpose3d", {5}, {4, 6}, "need 5 axes, the last ones DHW",
               [](auto& g, auto n) { conv_transpose3d(of_rank(g, 5), of_rank(g, n)); });
  check_bounds("im2col", {4}, {3, 5}, of_images,
               [](auto& g, auto n) { im2col(of_rank(g, n), {.kernel = 2}); });
  check_bounds("max_pool2d", {4}, {3, 5}, "needs the axes N, C, H and W (here {} axes)",
               [](auto& g, auto n) { max_pool2d(of_rank(g, n), {.kernel = 2}); });
}

TEST_CASE("ranks of the operands of norms, attention and dropout") {
  check_bounds("moments", {2, 3, 4}, {1, 5}, "needs an input of two to four axes, N, C and more (here {})",
               [](auto& g, auto n) { moments(of_rank(g, n)); });
  check_bounds("group_norm", {2, 3, 5}, {0, 1}, "needs 2 axes or more",
               [](auto& g, auto n) { group_norm(of_rank(g, n), 2); });
  check_bounds("group_norm", {2, 3, 5}, {0, 1}, "needs 2 axes or more",
               [](auto& g, auto n) { group_norm(of_rank(g, n), 2, of_rank(g, 1), of_rank(g, 1)); });
  check_bounds("instance_norm", {3, 5}, {0, 2}, "needs 3 axes or more",
               [](auto& g, auto n) { instance_norm(of_rank(g, n)); });
  check_bounds("instance_norm", {3, 5}, {0, 2}, "needs 3 axes or more",
               [](auto& g, auto n) { instance_norm(of_rank(g, n), of_rank(g, 1), of_rank(g, 1)); });
  check_bounds("local_response_norm", {3, 5}, {0, 2}, "needs 3 axes or more",
               [](auto& g, auto n) { local_response_norm(of_rank(g, n), 2); });
  check_bounds("dropout1d", {3}, {2, 4}, of_lines, [](auto& g, auto n) { dropout1d(of_rank(g, n)); });
  check_bounds("dropout2d", {4}, {3, 5}, of_images, [](auto& g, auto n) { dropout2d(of_rank(g, n)); });
  check_bounds("dropout3d", {5}, {4, 6}, of_volumes, [](auto& g, auto n) { dropout3d(of_rank(g, n)); });
  check_bounds("drop_path", {1, 2}, {0}, "needs an axis of samples",
               [](auto& g, auto n) { drop_path(of_rank(g, n)); });
  check_bounds("scaled_dot_product_attention", {2, 3}, {0, 1}, two_axes, [](auto& g, auto n) {
    scaled_dot_product_attention(of_rank(g, n), of_rank(g, 2), of_rank(g, 2));
  });
  check_bounds("scaled_dot_product_attention", {2, 3}, {0, 1}, two_axes, [](auto& g, auto n) {
    scaled_dot_product_attention(of_rank(g, 2), of_rank(g, n), of_rank(g, 2));
  });
  check_bounds("scaled_dot_product_attention", {2, 3}, {0, 1}, two_axes, [](auto& g, auto n) {
    scaled_dot_product_attention(of_rank(g, 2), of_rank(g, 2), of_rank(g, n));
  });
  check_bounds("rotary", {2, 3}, {0, 1}, "needs two axes or more: the positions and the features",
               [](auto& g, auto n) { rotary(of_rank(g, n)); });
}

TEST_CASE("ranks of the operands of images") {
  check_bounds("pixel_shuffle", {4}, {3, 5}, of_images,
               [](auto& g, auto n) { pixel_shuffle(of_rank(g, n), 2); });
  check_bounds("pixel_unshuffle", {4}, {3, 5}, of_images,
               [](auto& g, auto n) { pixel_unshuffle(of_rank(g, n), 2); });
  check_bounds("interpolate", {3}, {2, 4}, "the mode needs 3 axes, of which", [](auto& g, auto n) {
    interpolate(of_rank(g, n), {.size = {2}, .mode = InterpolateMode::linear});
  });
  check_bounds("interpolate", {4}, {3, 5}, "the mode needs 4 axes, of which", [](auto& g, auto n) {
    interpolate(of_rank(g, n), {.size = {2}, .mode = InterpolateMode::bicubic});
  });
  check_bounds("interpolate", {5}, {4, 6}, "the mode needs 5 axes, of which", [](auto& g, auto n) {
    interpolate(of_rank(g, n), {.size = {2}, .mode = InterpolateMode::trilinear});
  });
  check_bounds("interpolate", {3, 4, 5}, {2}, "the mode needs 3 axes or more, of which",
               [](auto& g, auto n) { interpolate(of_rank(g, n), {.size = {2}}); });
}

TEST_CASE("ranks of the operands of losses") {
  check_bounds("triplet_margin", {1, 3}, {0}, "the operands need an axis, along which the vectors are",
               [](auto& g, auto n) { triplet_margin(of_rank(g, n), of_rank(g, n), of_rank(g, n)); });
  check_bounds("cosine_embedding", {1, 3}, {0}, "the operands need an axis, along which the vectors are",
               [](auto& g, auto n) {
                 cosine_embedding(of_rank(g, n), of_rank(g, n), of_rank(g, std::max(n - 1, 0.0)));
               });
  check_bounds("softmax_cross_entropy", {2}, {1, 3},
               "the logits need two axes, samples and classes (here {})",
               [](auto& g, auto n) { softmax_cross_entropy(of_rank(g, n, 2), labels(g)); });
  check_bounds("nll", {2}, {1, 3}, "the logits need two axes, samples and classes",
               [](auto& g, auto n) { nll(of_rank(g, n, 2), labels(g)); });
  check_bounds("top_k_correct", {2}, {1, 3}, "the logits need two axes, samples and classes (here {})",
               [](auto& g, auto n) { top_k_correct(of_rank(g, n, 2), labels(g)); });
  check_bounds("prelu", {2, 3}, {0, 1}, "the slope must have shape",
               [](auto& g, auto n) { prelu(of_rank(g, n), of_rank(g, 1)); });
}

TEST_CASE("ranks of the operands of products and linear algebra") {
  check_bounds("matmul", {2, 3}, {0, 1}, "both operands need two axes or more",
               [](auto& g, auto n) { matmul(of_rank(g, n), of_rank(g, 2)); });
  check_bounds("matmul", {2, 3}, {0, 1}, "both operands need two axes or more",
               [](auto& g, auto n) { matmul(of_rank(g, 2), of_rank(g, n)); });
  check_bounds("triangular_solve", {2, 3}, {0, 1}, square_matrices,
               [](auto& g, auto n) { triangular_solve(of_rank(g, n), of_rank(g, 2)); });
  check_bounds("triu", {2, 3}, {0, 1}, "needs two axes, rows and columns",
               [](auto& g, auto n) { triu(of_rank(g, n)); });
  check_bounds("tril", {2, 3}, {0, 1}, "needs two axes, rows and columns",
               [](auto& g, auto n) { tril(of_rank(g, n)); });
  check_bounds("dot", {1}, {0, 2}, one_axis, [](auto& g, auto n) { dot(of_rank(g, n), of_rank(g, 1)); });
  check_bounds("dot", {1}, {0, 2}, one_axis, [](auto& g, auto n) { dot(of_rank(g, 1), of_rank(g, n)); });
  check_bounds("outer", {1}, {0, 2}, one_axis, [](auto& g, auto n) { outer(of_rank(g, n), of_rank(g, 1)); });
  check_bounds("outer", {1}, {0, 2}, one_axis, [](auto& g, auto n) { outer(of_rank(g, 1), of_rank(g, n)); });
  check_bounds("cholesky", {2, 3}, {0, 1}, square_matrices, [](auto& g, auto n) { cholesky(of_rank(g, n)); });
  check_bounds("inverse", {2, 3}, {0, 1}, square_matrices, [](auto& g, auto n) { inverse(of_rank(g, n)); });
  check_bounds("det", {2, 3}, {0, 1}, square_matrices, [](auto& g, auto n) { det(of_rank(g, n)); });
  check_bounds("logdet", {2, 3}, {0, 1}, square_matrices, [](auto& g, auto n) { logdet(of_rank(g, n)); });
  check_bounds("solve", {2, 3}, {0, 1}, square_matrices,
               [](auto& g, auto n) { solve(of_rank(g, n), of_rank(g, 2)); });
}

TEST_CASE("shape rules refuse operands that builders do not make") {
  for (const Refused& refused : shape_rules)
    CHECK_THROWS_WITH_AS(refused.op->infer(refused.operands), doctest::Contains(refused.rule.c_str()),
                         RuleError);
}

}  // namespace plexaura::testing::operands_test
