// The bounds of the numbers and of the ranks that ops take: the last value that is accepted, and the first one that is
// refused. Composed ops are here, too, for which the coverage test has no options.

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <memory>

#include "core/base/error.h"
#include "core/ops/activations.h"
#include "core/ops/adaptive_pool.h"
#include "core/ops/arrange.h"
#include "core/ops/attention.h"
#include "core/ops/axes.h"
#include "core/ops/batch_norm.h"
#include "core/ops/class_losses.h"
#include "core/ops/constants.h"
#include "core/ops/conv1d.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/cummax.h"
#include "core/ops/dropout.h"
#include "core/ops/einsum.h"
#include "core/ops/element_losses.h"
#include "core/ops/indexing.h"
#include "core/ops/interpolate.h"
#include "core/ops/labels.h"
#include "core/ops/layer_norm.h"
#include "core/ops/linear_algebra.h"
#include "core/ops/losses.h"
#include "core/ops/lp_pool.h"
#include "core/ops/normalise_image.h"
#include "core/ops/norms.h"
#include "core/ops/ordering.h"
#include "core/ops/pool1d.h"
#include "core/ops/pool2d.h"
#include "core/ops/random.h"
#include "core/ops/recurrence.h"
#include "core/ops/reorder.h"
#include "core/ops/shape.h"
#include "core/ops/shared_dropout.h"
#include "core/ops/slice.h"
#include "core/ops/special_functions.h"
#include "core/ops/statistics.h"
#include "core/ops/subscript.h"
#include "core/ops/unary.h"
#include "core/ops/unfold.h"
#include "core/ops/vector_losses.h"
#include "core/ops/vectors.h"

namespace plexaura::testing::bounds_test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A number of a call: an option, an extent, or the rank of an operand.
struct Bounded {
  std::string op;  // its name, which the error prints
  std::function<void(Graph& graph, double number)> build;
  std::vector<double> accepted;
  std::vector<double> refused;
  std::string rule;  // words of the error, in which {} stands for the refused number
};

Node value(Graph& graph, Shape shape, DType dtype = DType::float32) {
  return graph.input(fmt::format("x{}", graph.size()), {dtype, std::move(shape)});
}
Node matrix(Graph& graph) { return value(graph, {2, 3}); }
Node images(Graph& graph) { return value(graph, {2, 4, 4, 4}); }
Node labels(Graph& graph) { return value(graph, {2}, DType::int64); }
Node of_rank(Graph& graph, double rank, std::int64_t extent = 4) {
  return value(graph, Shape(std::vector<std::int64_t>(static_cast<std::size_t>(rank), extent)));
}
std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

// clang-format off
const std::vector<Bounded> numbers{
    {"elu", [](Graph& g, double n) { elu(matrix(g), n); }, {0, -1}, {infinity}, "alpha must be a finite number, not {}"},
    {"celu", [](Graph& g, double n) { celu(matrix(g), n); }, {0.5, -1}, {0, infinity}, "alpha must be a finite number other than 0, not {}"},
    {"clip", [](Graph& g, double n) { clip(matrix(g), 1, n); }, {1, 2}, {0.5}, "low (1) must not be above high ({})"},
    {"hard_tanh", [](Graph& g, double n) { hard_tanh(matrix(g), 1, n); }, {1, 2}, {0.5}, "low (1) must not be above high ({})"},
    {"adaptive_avg_pool2d", [](Graph& g, double n) { adaptive_avg_pool1d(value(g, {2, 3, 4}), whole(n)); }, {1, 4}, {0}, "the output must"},
    {"adaptive_max_pool2d", [](Graph& g, double n) { adaptive_max_pool1d(value(g, {2, 3, 4}), whole(n)); }, {1, 4}, {0}, "the output must"},
    {"adaptive_avg_pool2d", [](Graph& g, double n) { adaptive_avg_pool2d(images(g), {2, whole(n)}); }, {1, 4}, {0}, "(here 2 x {})"},
    {"adaptive_max_pool2d", [](Graph& g, double n) { adaptive_max_pool2d(images(g), {whole(n), 2}); }, {1, 4}, {0}, "(here {} x 2)"},
    {"pad", [](Graph& g, double n) { pad(matrix(g), {{1, whole(n), 0}}); }, {0, 9}, {-1}, "along axis 1 must be 0 or more"},
    {"pad", [](Graph& g, double n) { pad(matrix(g), {{1, 0, whole(n)}}); }, {0, 9}, {-1}, "along axis 1 must be 0 or more"},
    {"pad", [](Graph& g, double n) { pad(matrix(g), {{1, whole(n), 0}}, {.mode = PadMode::reflect}); }, {0, 2}, {3}, "reflect can add at most 2 elements at an end of axis 1, not {}"},
    {"pad", [](Graph& g, double n) { pad(matrix(g), {{1, 0, whole(n)}}, {.mode = PadMode::circular}); }, {0, 3}, {4}, "circular can add at most 3 elements at an end of axis 1, not {}"},
    {"pad", [](Graph& g, double n) { pad(value(g, {2, whole(n)}), {{1, 1, 0}}, {.mode = PadMode::replicate}); }, {1}, {0}, "axis 1 is empty and has no element to replicate"},
    {"pad", [](Graph& g, double n) { pad(value(g, {2, 0}), {{1, 0, whole(n)}}, {.mode = PadMode::reflect}); }, {0}, {1}, "reflect can add at most 0 elements at an end of axis 1, not {}"},
    {"scaled_dot_product_attention", [](Graph& g, double n) { const Node x = matrix(g); scaled_dot_product_attention(x, x, x, {.scale = n}); }, {0, -1}, {infinity}, "the scale must be a finite number"},
    {"rotary", [](Graph& g, double n) { rotary(value(g, {3, 4}), {.base = n}); }, {0.5}, {0, -1, infinity}, "the base must be a finite number above 0, not {}"},
    {"rotary", [](Graph& g, double n) { rotary(value(g, {3, whole(n)})); }, {2, 4}, {3}, "the last axis must have an even number of features"},
    {"split", [](Graph& g, double n) { split(matrix(g), whole(n), 1); }, {1, 5}, {0, -1}, "the size of a piece must be 1 or more, not {}"},
    {"split_with_sizes", [](Graph& g, double n) { split_with_sizes(matrix(g), {whole(n), 3 - whole(n)}, 1); }, {0, 3}, {-1}, "a size must be 0 or more, not {}"},
    {"split_with_sizes", [](Graph& g, double n) { split_with_sizes(matrix(g), {whole(n), 1}, 1); }, {2}, {1, 3, 9}, "the sizes {}, 1 must add up to 3, the extent of axis 1"},
    {"chunk", [](Graph& g, double n) { chunk(matrix(g), whole(n), 1); }, {1, 5}, {0, -1}, "the number of pieces must be 1 or more, not {}"},
    {"tile", [](Graph& g, double n) { tile(matrix(g), {2, whole(n)}); }, {0, 1}, {-1}, "a repeat must be 0 or more, not {}"},
    {"moments", [](Graph& g, double n) { moments(matrix(g), {.epsilon = n}); }, {1e-9}, {0, -1}, "epsilon must be above 0, not {}"},
    {"batch_norm_inference", [](Graph& g, double n) { const Node c = value(g, {3}); batch_norm_inference(matrix(g), c, c, c, c, {.epsilon = n}); }, {1e-9}, {0, -1}, "epsilon must be above 0, not {}"},
    {"softmax_cross_entropy", [](Graph& g, double n) { softmax_cross_entropy(matrix(g), labels(g), {.label_smoothing = n}); }, {0, 1}, {-0.25, 1.25}, "label_smoothing must be from 0 to 1, not {}"},
    {"iota", [](Graph& g, double n) { iota(g, whole(n)); }, {0, 1}, {-1}, "an extent must be 0 or more, not {}"},
    {"iota", [](Graph& g, double n) { iota(g, whole(n), DType::uint8); }, {256}, {257}, "uint8 cannot hold all whole numbers below {}"},
    {"eye", [](Graph& g, double n) { eye(g, whole(n), 2); }, {0}, {-1}, "an extent must be 0 or more, not {}"},
    {"eye", [](Graph& g, double n) { eye(g, 2, whole(n)); }, {0}, {-1}, "an extent must be 0 or more, not {}"},
    {"conv_transpose1d", [](Graph& g, double n) { conv_transpose1d(value(g, {2, 4, 5}), value(g, {4, 3, 2}), {.stride = 2, .output_padding = whole(n)}); }, {0, 1}, {-1, 2}, "output_padding must be 0 or more and less than the stride, 2; it is {}"},
    {"conv_transpose2d", [](Graph& g, double n) { conv_transpose2d(images(g), value(g, {4, 3, 1, 2}), {.stride = {1, 3}, .output_padding = {0, whole(n)}}); }, {0, 2}, {-1, 3}, "output_padding must be 0 or more and less than the stride, 3; it is {}"},
    {"conv_transpose3d", [](Graph& g, double n) { conv_transpose3d(value(g, {2, 4, 3, 3, 3}), value(g, {4, 3, 2, 1, 1}), {.stride = {2, 1, 1}, .output_padding = {whole(n), 0, 0}}); }, {0, 1}, {-1, 2}, "output_padding must be 0 or more and less than the stride, 2; it is {}"},
    {"conv_transpose1d", [](Graph& g, double n) { conv_transpose1d(value(g, {2, 4, 2}), value(g, {4, 3, 3}), {.padding = whole(n)}); }, {1}, {2}, "nothing is left along L"},
    {"conv_transpose1d", [](Graph& g, double n) { conv_transpose1d(value(g, {2, 4, whole(n)}), value(g, {4, 3, 3})); }, {1}, {0}, "nothing is left along L"},
    {"conv_transpose2d", [](Graph& g, double n) { conv_transpose2d(value(g, {2, 4, 2, 3}), value(g, {4, 3, 3, 1}), {.padding = {whole(n), 0}}); }, {1}, {2}, "nothing is left along H"},
    {"conv_transpose3d", [](Graph& g, double n) { conv_transpose3d(value(g, {2, 4, 2, 3, 3}), value(g, {4, 3, 3, 1, 1}), {.padding = {whole(n), 0, 0}}); }, {1}, {2}, "nothing is left along D"},
    {"conv2d", [](Graph& g, double n) { conv2d(images(g), value(g, {4, 4 / std::max<std::int64_t>(1, whole(n)), 2, 2}), {.groups = whole(n)}); }, {1, 2, 4}, {0, -1}, "groups must be 1 or more, not {}"},
    {"binary_cross_entropy_with_logits", [](Graph& g, double n) { const Node x = value(g, {2, 3, 4}); binary_cross_entropy_with_logits(x, x, value(g, {3, whole(n)})); }, {1, 4}, {2, 3}, "pos_weight must broadcast"},
    {"binary_cross_entropy_with_logits", [](Graph& g, double n) { const Node x = value(g, {2, 3, 4}); binary_cross_entropy_with_logits(x, x, value(g, {whole(n), 4})); }, {1, 3}, {2, 4}, "pos_weight must broadcast"},
    {"normalise_image", [](Graph& g, double n) { normalise_image(value(g, {1, 3, 2}, DType::uint8), {.scale = {{n}, {1}}}); }, {std::numeric_limits<float>::max()}, {1e39, infinity}, "mean must be finite"},
    {"normalise_image", [](Graph& g, double n) { normalise_image(value(g, {1, 3, 2}, DType::uint8), {.scale = {{0}, {n}}}); }, {std::numeric_limits<float>::min()}, {0, 1e-46, -1}, "above 0"},
    {"normalise_image", [](Graph& g, double n) { normalise_image(value(g, {1, 3, 2}, DType::uint8), {.scale = {{n}, {1}}, .dtype = DType::float64}); }, {1e39, std::numeric_limits<double>::max()}, {infinity}, "mean must be finite"},
    {"normalise_image", [](Graph& g, double n) { normalise_image(value(g, {1, 3, 2}, DType::uint8), {.scale = {{0}, {n}}, .dtype = DType::float64}); }, {std::numeric_limits<double>::min()}, {0, 1e-310, -1}, "above 0"},
    {"smooth_l1", [](Graph& g, double n) { smooth_l1(matrix(g), matrix(g), n); }, {1e-9}, {0, -1, infinity}, "beta must be a finite number above 0, not {}"},
    {"smooth_l1", [](Graph& g, double n) { smooth_l1(matrix(g), matrix(g), n); }, {std::numeric_limits<float>::min(), std::numeric_limits<float>::max()}, {1e-46, 1e39}, "beta must be from 1.1754943508222875e-38 to 3.4028234663852886e+38 for float32"},
    {"smooth_l1", [](Graph& g, double n) { smooth_l1(value(g, {3}, DType::float16), value(g, {3}, DType::float16), n); }, {1e-6, 1e5}, {1e-8}, "for float16"},
    {"huber", [](Graph& g, double n) { huber(matrix(g), matrix(g), n); }, {1e-9}, {0, -1, infinity}, "delta must be a finite number above 0, not {}"},
    {"gaussian_nll", [](Graph& g, double n) { gaussian_nll(matrix(g), matrix(g), matrix(g), n); }, {1e-9}, {0, -1, infinity}, "epsilon must be a finite number above 0, not {}"},
    {"margin_ranking", [](Graph& g, double n) { margin_ranking(matrix(g), matrix(g), matrix(g), n); }, {0, -1}, {infinity}, "the margin must be a finite number, not {}"},
    {"triplet_margin", [](Graph& g, double n) { triplet_margin(matrix(g), matrix(g), matrix(g), {.margin = n}); }, {0, -1}, {infinity}, "the margin must be a finite number, not {}"},
    {"triplet_margin", [](Graph& g, double n) { triplet_margin(matrix(g), matrix(g), matrix(g), {.p = n}); }, {0.5, infinity}, {0, -1}, "p must be above 0, not {}"},
    {"triplet_margin", [](Graph& g, double n) { triplet_margin(matrix(g), matrix(g), matrix(g), {.epsilon = n}); }, {0, -1}, {infinity}, "epsilon must be a finite number, not {}"},
    {"cosine_embedding", [](Graph& g, double n) { cosine_embedding(matrix(g), matrix(g), value(g, {2}), n); }, {0, -1}, {infinity}, "the margin must be a finite number, not {}"},
    {"cosine_similarity", [](Graph& g, double n) { cosine_similarity(matrix(g), matrix(g), -1, n); }, {1e-9}, {0, -1, infinity}, "epsilon must be a finite number above 0, not {}"},
    {"tensordot", [](Graph& g, double n) { const Node x = value(g, {3, 3}); tensordot(x, x, whole(n)); }, {0, 2}, {-1, 3}, "both operands must have the {} axes to sum over"},
    {"interpolate", [](Graph& g, double n) { interpolate(images(g), {.size = {whole(n)}}); }, {1}, {0, -1, 2147483648}, "axis 2 would have {} elements; it needs 1 to 2147483647"},
    {"interpolate", [](Graph& g, double n) { interpolate(images(g), {.scale = {n}}); }, {0.25, 2}, {0, -1, infinity}, "a scale must be a finite number above 0, not {}"},
    {"interpolate", [](Graph& g, double n) { interpolate(value(g, {2, 3, 4, whole(n)}), {.size = {2}}); }, {1}, {0}, "axis 3 is empty and has no pixels"},
    {"pixel_shuffle", [](Graph& g, double n) { pixel_shuffle(images(g), whole(n)); }, {1, 2}, {0, -1, 32768}, "the factor must be 1 to 32767, not {}"},
    {"pixel_shuffle", [](Graph& g, double n) { pixel_shuffle(value(g, {2, whole(n), 3, 3}), 2); }, {4, 8}, {2, 6}, "divisible by"},
    {"pixel_unshuffle", [](Graph& g, double n) { pixel_unshuffle(images(g), whole(n)); }, {1, 2}, {0, -1, 32768}, "the factor must be 1 to 32767, not {}"},
    {"pixel_unshuffle", [](Graph& g, double n) { pixel_unshuffle(value(g, {2, 3, whole(n), 3}), 3); }, {3, 6}, {4}, "height and width must be divisible by the factor, 3"},
    {"pixel_unshuffle", [](Graph& g, double n) { pixel_unshuffle(value(g, {2, 3, 3, whole(n)}), 3); }, {3, 6}, {4}, "height and width must be divisible by the factor, 3"},
    {"one_hot", [](Graph& g, double n) { one_hot(labels(g), whole(n), DType::float32); }, {0, 1}, {-1}, "the number of classes must not be negative"},
    {"top_k_correct", [](Graph& g, double n) { top_k_correct(matrix(g), labels(g), whole(n)); }, {1, 9}, {0, -1}, "k must be 1 or more, not {}"},
    {"layer_norm", [](Graph& g, double n) { const Node c = value(g, {3}); layer_norm(matrix(g), c, c, {.epsilon = n}); }, {1e-9}, {0, -1}, "epsilon must be above 0, not {}"},
    {"standardise", [](Graph& g, double n) { standardise(matrix(g), 1, {.epsilon = n}); }, {1e-9}, {0, -1}, "epsilon must be above 0, not {}"},
    {"standardise", [](Graph& g, double n) { standardise(matrix(g), whole(n)); }, {1, 2}, {0, -1, 3}, "axes must be at least 1 and at most the input's 2, not {}"},
    {"rms_norm", [](Graph& g, double n) { rms_norm(matrix(g), value(g, {3}), {.epsilon = n}); }, {0, 1}, {-1}, "epsilon must be at least 0, not {}"},
    {"group_norm", [](Graph& g, double n) { group_norm(images(g), 2, {.epsilon = n}); }, {1e-9}, {0, -1}, "epsilon must be above 0, not {}"},
    {"group_norm", [](Graph& g, double n) { group_norm(images(g), whole(n)); }, {1, 2, 4}, {0, -2, 3, 8}, "the 4 channels must be divisible by the number of groups, 1 or more (here {})"},
    {"instance_norm", [](Graph& g, double n) { instance_norm(images(g), {.epsilon = n}); }, {1e-9}, {0, -1}, "epsilon must be above 0, not {}"},
    {"local_response_norm", [](Graph& g, double n) { local_response_norm(images(g), whole(n)); }, {1, 4}, {0, -1}, "the number of neighbouring channels must be 1 or more, not {}"},
    {"local_response_norm", [](Graph& g, double n) { local_response_norm(images(g), 2, {.k = n}); }, {1e-9}, {0, -1}, "k must be above 0, not {}"},
    {"lp_pool1d", [](Graph& g, double n) { lp_pool1d(value(g, {2, 3, 4}), {.p = n, .kernel = 2}); }, {0.5, 3}, {0, -1, infinity}, "p must be a finite number above 0, not {}"},
    {"lp_pool2d", [](Graph& g, double n) { lp_pool2d(images(g), {.p = n, .kernel = 2}); }, {0.5, 3}, {0, -1, infinity}, "p must be a finite number above 0, not {}"},
    {"lp_pool3d", [](Graph& g, double n) { lp_pool3d(value(g, {1, 1, 4, 4, 4}), {.p = n, .kernel = 2}); }, {0.5, 3}, {0, -1, infinity}, "p must be a finite number above 0, not {}"},
    {"topk", [](Graph& g, double n) { topk(matrix(g), whole(n)); }, {0, 3}, {-1, 4}, "k must be from 0 to 3, not {}"},
    {"kthvalue", [](Graph& g, double n) { kthvalue(matrix(g), whole(n)); }, {1, 3}, {0, 4}, "k must be from 1 to 3, not {}"},
    {"median", [](Graph& g, double n) { median(value(g, {whole(n), 3}), 0); }, {1, 2}, {0}, "axis 0 is empty"},
    {"quantile", [](Graph& g, double n) { quantile(matrix(g), n); }, {0, 1}, {-0.25, 1.25}, "q must be from 0 to 1, not {}"},
    {"quantile", [](Graph& g, double n) { quantile(value(g, {whole(n), 3}), 0.5, {.axis = 0}); }, {1, 2}, {0}, "axis 0 is empty"},
    {"uniform", [](Graph& g, double n) { uniform(g, {DType::float32, {2}}, 1, n); }, {1, 2}, {0.5}, "the lower one (1) not above the upper one ({})"},
    {"normal", [](Graph& g, double n) { normal(g, {DType::float32, {2}}, 0, n); }, {0, 2}, {-1, infinity}, "the mean (0) and the deviation ({}) must be finite"},
    {"norm", [](Graph& g, double n) { norm(value(g, {2, whole(n)}), {.p = infinity, .axes = {1}}); }, {1}, {0}, "empty"},
    {"polygamma", [](Graph& g, double n) { polygamma(static_cast<int>(n), matrix(g)); }, {0, 1}, {-1}, "the order must not be negative, but is {}"},
    {"dropout", [](Graph& g, double n) { dropout(matrix(g), {.p = n}); }, {0, 0.99}, {-0.25, 1}, "the probability must be at least 0 and less than 1, not {}"},
    {"dropout", [](Graph& g, double n) { dropout1d(value(g, {2, 3, 4}), {.p = n}); }, {0, 0.99}, {-0.25, 1}, "the probability must be at least 0 and less than 1, not {}"},
    {"dropout", [](Graph& g, double n) { drop_path(matrix(g), {.p = n}); }, {0, 0.99}, {-0.25, 1}, "the probability must be at least 0 and less than 1, not {}"},
    {"slice", [](Graph& g, double n) { slice(matrix(g), {.axis = 1, .step = whole(n)}); }, {-1, 1}, {0}, "the step must not be {}"},
    {"slice_grad", [](Graph& g, double n) { slice_grad(value(g, {2, 0}), whole(n), {.axis = 1, .stop = 0}); }, {0, 2}, {-1}, "the extent must be 0 or more, not {}"},
    {"slice_grad", [](Graph& g, double n) { slice_grad(value(g, {2, whole(n)}), 5, {.axis = 1, .step = 2}); }, {3}, {2, 4}, "the gradient must have the 3 elements of the slice along axis 1"},
    {"", [](Graph& g, double n) { matrix(g)[{0, whole(n)}]; }, {-3, 2}, {-4, 3}, "axis 1 has 3 elements, and none with the index {}"},
    {"unfold", [](Graph& g, double n) { unfold(value(g, {5}), {.size = whole(n)}); }, {1, 5}, {6}, "a window of {} elements with dilation 1 does not fit into an axis of 5"},
    {"unfold", [](Graph& g, double n) { unfold(value(g, {5}), {.size = 3, .dilation = whole(n)}); }, {1, 2}, {3}, "a window of 3 elements with dilation {} does not fit into an axis of 5"},
    {"unfold", [](Graph& g, double n) { unfold(value(g, {5}), {.size = whole(n), .step = 2, .dilation = 3}); }, {1}, {0, -1}, "size, step and dilation must be 1 or more, not {}, 2 and 3"},
    {"unfold", [](Graph& g, double n) { unfold(value(g, {5}), {.size = 2, .step = whole(n), .dilation = 3}); }, {1, 9}, {0, -1}, "size, step and dilation must be 1 or more, not 2, {} and 3"},
    {"unfold", [](Graph& g, double n) { unfold(value(g, {5}), {.size = 2, .step = 3, .dilation = whole(n)}); }, {1}, {0, -1}, "size, step and dilation must be 1 or more, not 2, 3 and {}"},
    {"max_pool2d", [](Graph& g, double n) { max_pool2d(images(g), {.kernel = {2, 3}, .padding = {whole(n), 0}}); }, {0, 1}, {2}, "the padding may be at most half the kernel"},
    {"avg_pool2d", [](Graph& g, double n) { avg_pool2d(images(g), {.kernel = {3, 2}, .padding = {0, whole(n)}}); }, {0, 1}, {2}, "the padding may be at most half the kernel"},
    {"max_pool2d", [](Graph& g, double n) { max_pool1d(value(g, {2, 3, 4}), {.kernel = 2, .padding = whole(n)}); }, {0, 1}, {2}, "the padding may be at most half the kernel"},
    {"avg_pool2d", [](Graph& g, double n) { avg_pool1d(value(g, {2, 3, 4}), {.kernel = 2, .padding = whole(n)}); }, {0, 1}, {2}, "the padding may be at most half the kernel"},
};

// The rank of an operand.
const std::vector<Bounded> ranks{
    {"conv1d", [](Graph& g, double n) { conv1d(of_rank(g, n), of_rank(g, 3)); }, {3}, {2, 4}, "the input needs the axes N, C and L"},
    {"conv1d", [](Graph& g, double n) { conv1d(of_rank(g, 3), of_rank(g, n)); }, {3}, {2, 4}, "the weights need the axes O, C / groups and K"},
    {"conv1d", [](Graph& g, double n) { conv1d(of_rank(g, 3), of_rank(g, n), of_rank(g, 1)); }, {3}, {2, 4}, "the weights need the axes O, C / groups and K"},
    {"conv_transpose1d", [](Graph& g, double n) { conv_transpose1d(of_rank(g, n), of_rank(g, 3)); }, {3}, {2, 4}, "need 3 axes, the last one L"},
    {"conv_transpose1d", [](Graph& g, double n) { conv_transpose1d(of_rank(g, 3), of_rank(g, n)); }, {3}, {2, 4}, "need 3 axes, the last one L"},
    {"conv_transpose2d", [](Graph& g, double n) { conv_transpose2d(of_rank(g, n), of_rank(g, 4)); }, {4}, {3, 5}, "need 4 axes, the last ones HW"},
    {"conv_transpose2d", [](Graph& g, double n) { conv_transpose2d(of_rank(g, 4), of_rank(g, n)); }, {4}, {3, 5}, "need 4 axes, the last ones HW"},
    {"conv_transpose3d", [](Graph& g, double n) { conv_transpose3d(of_rank(g, n), of_rank(g, 5)); }, {5}, {4, 6}, "need 5 axes, the last ones DHW"},
    {"conv_transpose3d", [](Graph& g, double n) { conv_transpose3d(of_rank(g, 5), of_rank(g, n)); }, {5}, {4, 6}, "need 5 axes, the last ones DHW"},
    {"moments", [](Graph& g, double n) { moments(of_rank(g, n)); }, {2, 3, 4}, {1, 5}, "needs an input of two to four axes, N, C and more (here {})"},
    {"group_norm", [](Graph& g, double n) { group_norm(of_rank(g, n), 2); }, {2, 3, 5}, {0, 1}, "needs 2 axes or more"},
    {"group_norm", [](Graph& g, double n) { group_norm(of_rank(g, n), 2, of_rank(g, 1), of_rank(g, 1)); }, {2, 3, 5}, {0, 1}, "needs 2 axes or more"},
    {"instance_norm", [](Graph& g, double n) { instance_norm(of_rank(g, n)); }, {3, 5}, {0, 2}, "needs 3 axes or more"},
    {"instance_norm", [](Graph& g, double n) { instance_norm(of_rank(g, n), of_rank(g, 1), of_rank(g, 1)); }, {3, 5}, {0, 2}, "needs 3 axes or more"},
    {"local_response_norm", [](Graph& g, double n) { local_response_norm(of_rank(g, n), 2); }, {3, 5}, {0, 2}, "needs 3 axes or more"},
    {"triu", [](Graph& g, double n) { triu(of_rank(g, n)); }, {2, 3}, {0, 1}, "needs two axes, rows and columns"},
    {"tril", [](Graph& g, double n) { tril(of_rank(g, n)); }, {2, 3}, {0, 1}, "needs two axes, rows and columns"},
    {"dropout1d", [](Graph& g, double n) { dropout1d(of_rank(g, n)); }, {3}, {2, 4}, "needs the axes N, C and L"},
    {"dropout2d", [](Graph& g, double n) { dropout2d(of_rank(g, n)); }, {4}, {3, 5}, "needs the axes N, C, H and W"},
    {"dropout3d", [](Graph& g, double n) { dropout3d(of_rank(g, n)); }, {5}, {4, 6}, "needs the axes N, C, D, H and W"},
    {"drop_path", [](Graph& g, double n) { drop_path(of_rank(g, n)); }, {1, 2}, {0}, "needs an axis of samples"},
    {"scaled_dot_product_attention", [](Graph& g, double n) { scaled_dot_product_attention(of_rank(g, n), of_rank(g, 2), of_rank(g, 2)); }, {2, 3}, {0, 1}, "need two axes or more"},
    {"scaled_dot_product_attention", [](Graph& g, double n) { scaled_dot_product_attention(of_rank(g, 2), of_rank(g, n), of_rank(g, 2)); }, {2, 3}, {0, 1}, "need two axes or more"},
    {"scaled_dot_product_attention", [](Graph& g, double n) { scaled_dot_product_attention(of_rank(g, 2), of_rank(g, 2), of_rank(g, n)); }, {2, 3}, {0, 1}, "need two axes or more"},
    {"rotary", [](Graph& g, double n) { rotary(of_rank(g, n)); }, {2, 3}, {0, 1}, "needs two axes or more: the positions and the features"},
    {"dot", [](Graph& g, double n) { dot(of_rank(g, n), of_rank(g, 1)); }, {1}, {0, 2}, "one axis"},
    {"dot", [](Graph& g, double n) { dot(of_rank(g, 1), of_rank(g, n)); }, {1}, {0, 2}, "one axis"},
    {"outer", [](Graph& g, double n) { outer(of_rank(g, n), of_rank(g, 1)); }, {1}, {0, 2}, "one axis"},
    {"outer", [](Graph& g, double n) { outer(of_rank(g, 1), of_rank(g, n)); }, {1}, {0, 2}, "one axis"},
    {"triplet_margin", [](Graph& g, double n) { triplet_margin(of_rank(g, n), of_rank(g, n), of_rank(g, n)); }, {1, 3}, {0}, "the operands need an axis, along which the vectors are"},
    {"cosine_embedding", [](Graph& g, double n) { cosine_embedding(of_rank(g, n), of_rank(g, n), of_rank(g, std::max(n - 1, 0.0))); }, {1, 3}, {0}, "the operands need an axis, along which the vectors are"},
    {"softmax_cross_entropy", [](Graph& g, double n) { softmax_cross_entropy(of_rank(g, n, 2), labels(g)); }, {2}, {1, 3}, "the logits need two axes, samples and classes (here {})"},
    {"nll", [](Graph& g, double n) { nll(of_rank(g, n, 2), labels(g)); }, {2}, {1, 3}, "axes"},
    {"top_k_correct", [](Graph& g, double n) { top_k_correct(of_rank(g, n, 2), labels(g)); }, {2}, {1, 3}, "the logits need two axes, samples and classes (here {})"},
    {"pixel_shuffle", [](Graph& g, double n) { pixel_shuffle(of_rank(g, n), 2); }, {4}, {3, 5}, "needs the axes N, C, H and W"},
    {"pixel_unshuffle", [](Graph& g, double n) { pixel_unshuffle(of_rank(g, n), 2); }, {4}, {3, 5}, "needs the axes N, C, H and W"},
    {"interpolate", [](Graph& g, double n) { interpolate(of_rank(g, n), {.size = {2}, .mode = InterpolateMode::linear}); }, {3}, {2, 4}, "the mode needs 3 axes, of which"},
    {"interpolate", [](Graph& g, double n) { interpolate(of_rank(g, n), {.size = {2}, .mode = InterpolateMode::bicubic}); }, {4}, {3, 5}, "the mode needs 4 axes, of which"},
    {"interpolate", [](Graph& g, double n) { interpolate(of_rank(g, n), {.size = {2}, .mode = InterpolateMode::trilinear}); }, {5}, {4, 6}, "the mode needs 5 axes, of which"},
    {"interpolate", [](Graph& g, double n) { interpolate(of_rank(g, n), {.size = {2}}); }, {3, 4, 5}, {2}, "the mode needs 3 axes or more, of which"},
    {"im2col", [](Graph& g, double n) { im2col(of_rank(g, n), {.kernel = 2}); }, {4}, {3, 5}, "needs the axes N, C, H and W"},
    {"max_pool2d", [](Graph& g, double n) { max_pool2d(of_rank(g, n), {.kernel = 2}); }, {4}, {3, 5}, "needs the axes N, C, H and W (here {} axes)"},
    {"cholesky", [](Graph& g, double n) { cholesky(of_rank(g, n)); }, {2, 3}, {0, 1}, ""},
    {"inverse", [](Graph& g, double n) { inverse(of_rank(g, n)); }, {2, 3}, {0, 1}, ""},
    {"det", [](Graph& g, double n) { det(of_rank(g, n)); }, {2, 3}, {0, 1}, ""},
    {"logdet", [](Graph& g, double n) { logdet(of_rank(g, n)); }, {2, 3}, {0, 1}, ""},
    {"solve", [](Graph& g, double n) { solve(of_rank(g, n), of_rank(g, 2)); }, {2, 3}, {0, 1}, ""},
    {"prelu", [](Graph& g, double n) { prelu(of_rank(g, n), of_rank(g, 1)); }, {2, 3}, {0, 1}, "the slope must have shape"},
};
// clang-format on

// Operands that a shape rule refuses. Builders check them before, or never make them, so the ops are used directly: by
// gradients, by programs that are read from a file, and by ops of other libraries.
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

std::string error_of(const Bounded& bounded, double number) {
  Graph graph;
  try {
    bounded.build(graph, number);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

void check(const std::vector<Bounded>& all) {
  for (const Bounded& bounded : all) {
    CAPTURE(bounded.op);
    CAPTURE(bounded.rule);
    for (const double number : bounded.accepted) {
      CAPTURE(number);
      CHECK(error_of(bounded, number) == "");
    }
    for (const double number : bounded.refused) {
      const std::string error = error_of(bounded, number);
      const std::string words = fmt::format(fmt::runtime(bounded.rule), number);
      CHECK_MESSAGE(contains(error, bounded.op), fmt::format("{} of {}: {}", words, number, error));
      CHECK_MESSAGE(contains(error, words), fmt::format("'{}' is not in: {}", words, error));
    }
  }
}

}  // namespace

TEST_CASE("ops take numbers up to their bounds and refuse those beyond") { check(numbers); }
TEST_CASE("ops take operands of some ranks and refuse those of others") { check(ranks); }

TEST_CASE("shape rules refuse operands that builders do not make") {
  for (const Refused& refused : shape_rules)
    CHECK_THROWS_WITH_AS(refused.op->infer(refused.operands), doctest::Contains(refused.rule.c_str()),
                         RuleError);
}

}  // namespace plexaura::testing::bounds_test
