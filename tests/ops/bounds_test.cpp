// The bounds of the numbers that ops take: the last value that is accepted, and the first one that is refused.

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>

#include "core/ops/activations.h"
#include "core/ops/adaptive_pool.h"
#include "core/ops/arrange.h"
#include "core/ops/attention.h"
#include "core/ops/axes.h"
#include "core/ops/batch_norm.h"
#include "core/ops/constants.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/einsum.h"
#include "core/ops/element_losses.h"
#include "core/ops/interpolate.h"
#include "core/ops/labels.h"
#include "core/ops/layer_norm.h"
#include "core/ops/losses.h"
#include "core/ops/lp_pool.h"
#include "core/ops/normalise_image.h"
#include "core/ops/norms.h"
#include "core/ops/ordering.h"
#include "core/ops/pool1d.h"
#include "core/ops/pool2d.h"
#include "core/ops/random.h"
#include "core/ops/shared_dropout.h"
#include "core/ops/slice.h"
#include "core/ops/special_functions.h"
#include "core/ops/statistics.h"
#include "core/ops/subscript.h"
#include "core/ops/unary.h"
#include "core/ops/unfold.h"
#include "core/ops/vector_losses.h"
#include "core/ops/vectors.h"
#include "tests/support/check_bounds.h"

namespace plexaura::testing::bounds_test {

namespace {

using namespace bounds;

constexpr double infinity = std::numeric_limits<double>::infinity();

Node lines(Graph& graph) { return value(graph, {2, 3, 4}); }
Node photo(Graph& graph) { return value(graph, {1, 3, 2}, DType::uint8); }

// Rules of errors, in which {} stands for the refused number.
std::string finite(const std::string& name) { return name + " must be a finite number, not {}"; }
std::string above_0(const std::string& name) { return name + " must be above 0, not {}"; }
std::string finite_above_0(const std::string& name) {
  return name + " must be a finite number above 0, not {}";
}
std::string or_more(const std::string& name, int least) {
  return fmt::format("{} must be {} or more, not {{}}", name, least);
}

const std::string from_0_below_1 = "the probability must be at least 0 and less than 1, not {}";
const std::string half_the_kernel = "the padding may be at most half the kernel";

}  // namespace

TEST_CASE("bounds of the numbers of activations") {
  check_bounds("elu", {0, -1}, {infinity}, finite("alpha"), [](auto& g, auto n) { elu(matrix(g), n); });
  check_bounds("celu", {0.5, -1}, {0, infinity}, "alpha must be a finite number other than 0, not {}",
               [](auto& g, auto n) { celu(matrix(g), n); });
  check_bounds("clip", {1, 2}, {0.5}, "low (1) must not be above high ({})",
               [](auto& g, auto n) { clip(matrix(g), 1, n); });
  check_bounds("hard_tanh", {1, 2}, {0.5}, "low (1) must not be above high ({})",
               [](auto& g, auto n) { hard_tanh(matrix(g), 1, n); });
  check_bounds("polygamma", {0, 1}, {-1}, "the order must not be negative, but is {}",
               [](auto& g, auto n) { polygamma(static_cast<int>(n), matrix(g)); });
}

TEST_CASE("bounds of the numbers of ops that move elements") {
  check_bounds("pad", {0, 9}, {-1}, "along axis 1 must be 0 or more", [](auto& g, auto n) {
    pad(matrix(g), {{1, whole(n), 0}});
  });
  check_bounds("pad", {0, 9}, {-1}, "along axis 1 must be 0 or more", [](auto& g, auto n) {
    pad(matrix(g), {{1, 0, whole(n)}});
  });
  check_bounds("pad", {0, 2}, {3}, "reflect can add at most 2 elements at an end of axis 1, not {}",
               [](auto& g, auto n) {
                 pad(matrix(g), {{1, whole(n), 0}}, {.mode = PadMode::reflect});
               });
  check_bounds("pad", {0, 3}, {4}, "circular can add at most 3 elements at an end of axis 1, not {}",
               [](auto& g, auto n) {
                 pad(matrix(g), {{1, 0, whole(n)}}, {.mode = PadMode::circular});
               });
  check_bounds("pad", {1}, {0}, "axis 1 is empty and has no element to replicate", [](auto& g, auto n) {
    pad(value(g, {2, whole(n)}), {{1, 1, 0}}, {.mode = PadMode::replicate});
  });
  check_bounds("pad", {0}, {1}, "reflect can add at most 0 elements at an end of axis 1, not {}",
               [](auto& g, auto n) {
                 pad(value(g, {2, 0}), {{1, 0, whole(n)}}, {.mode = PadMode::reflect});
               });
  check_bounds("split", {1, 5}, {0, -1}, or_more("size of a piece", 1),
               [](auto& g, auto n) { split(matrix(g), whole(n), 1); });
  check_bounds("split_with_sizes", {0, 3}, {-1}, or_more("size", 0), [](auto& g, auto n) {
    split_with_sizes(matrix(g), {whole(n), 3 - whole(n)}, 1);
  });
  check_bounds("split_with_sizes", {2}, {1, 3, 9}, "the sizes {}, 1 must add up to 3, the extent of axis 1",
               [](auto& g, auto n) {
                 split_with_sizes(matrix(g), {whole(n), 1}, 1);
               });
  check_bounds("chunk", {1, 5}, {0, -1}, or_more("number of pieces", 1),
               [](auto& g, auto n) { chunk(matrix(g), whole(n), 1); });
  check_bounds("tile", {0, 1}, {-1}, or_more("repeat", 0), [](auto& g, auto n) {
    tile(matrix(g), {2, whole(n)});
  });
  check_bounds("pixel_shuffle", {1, 2}, {0, -1, 32768}, "the factor must be 1 to 32767, not {}",
               [](auto& g, auto n) { pixel_shuffle(images(g), whole(n)); });
  check_bounds("pixel_shuffle", {4, 8}, {2, 6}, "divisible by", [](auto& g, auto n) {
    pixel_shuffle(value(g, {2, whole(n), 3, 3}), 2);
  });
  check_bounds("pixel_unshuffle", {1, 2}, {0, -1, 32768}, "the factor must be 1 to 32767, not {}",
               [](auto& g, auto n) { pixel_unshuffle(images(g), whole(n)); });
  check_bounds("pixel_unshuffle", {3, 6}, {4}, "height and width must be divisible by the factor, 3",
               [](auto& g, auto n) {
                 pixel_unshuffle(value(g, {2, 3, whole(n), 3}), 3);
               });
  check_bounds("pixel_unshuffle", {3, 6}, {4}, "height and width must be divisible by the factor, 3",
               [](auto& g, auto n) {
                 pixel_unshuffle(value(g, {2, 3, 3, whole(n)}), 3);
               });
  check_bounds("slice", {-1, 1}, {0}, "the step must not be {}",
               [](auto& g, auto n) { slice(matrix(g), {.axis = 1, .step = whole(n)}); });
  check_bounds("slice_grad", {0, 2}, {-1}, or_more("extent", 0), [](auto& g, auto n) {
    slice_grad(value(g, {2, 0}), whole(n), {.axis = 1, .stop = 0});
  });
  check_bounds("slice_grad", {3}, {2, 4}, "the gradient must have the 3 elements of the slice along axis 1",
               [](auto& g, auto n) {
                 slice_grad(value(g, {2, whole(n)}), 5, {.axis = 1, .step = 2});
               });
  check_bounds("[]", {-3, 2}, {-4, 3}, "axis 1 has 3 elements, and none with the index {}",
               [](auto& g, auto n) {
                 matrix(g)[{0, whole(n)}];
               });
  check_bounds("unfold", {1, 5}, {6},
               "a window of {} elements with dilation 1 does not fit into an axis of 5",
               [](auto& g, auto n) { unfold(value(g, {5}), {.size = whole(n)}); });
  check_bounds("unfold", {1, 2}, {3},
               "a window of 3 elements with dilation {} does not fit into an axis of 5",
               [](auto& g, auto n) { unfold(value(g, {5}), {.size = 3, .dilation = whole(n)}); });
  check_bounds("unfold", {1}, {0, -1}, "size, step and dilation must be 1 or more, not {}, 2 and 3",
               [](auto& g, auto n) { unfold(value(g, {5}), {.size = whole(n), .step = 2, .dilation = 3}); });
  check_bounds("unfold", {1, 9}, {0, -1}, "size, step and dilation must be 1 or more, not 2, {} and 3",
               [](auto& g, auto n) { unfold(value(g, {5}), {.size = 2, .step = whole(n), .dilation = 3}); });
  check_bounds("unfold", {1}, {0, -1}, "size, step and dilation must be 1 or more, not 2, 3 and {}",
               [](auto& g, auto n) { unfold(value(g, {5}), {.size = 2, .step = 3, .dilation = whole(n)}); });
}

TEST_CASE("bounds of the numbers of ops that make values") {
  check_bounds("iota", {0, 1}, {-1}, or_more("extent", 0), [](auto& g, auto n) { iota(g, whole(n)); });
  check_bounds("iota", {256}, {257}, "uint8 cannot hold all whole numbers below {}",
               [](auto& g, auto n) { iota(g, whole(n), DType::uint8); });
  check_bounds("eye", {0}, {-1}, or_more("extent", 0), [](auto& g, auto n) { eye(g, whole(n), 2); });
  check_bounds("eye", {0}, {-1}, or_more("extent", 0), [](auto& g, auto n) { eye(g, 2, whole(n)); });
  check_bounds("one_hot", {0, 1}, {-1}, "the number of classes must not be negative",
               [](auto& g, auto n) { one_hot(labels(g), whole(n), DType::float32); });
  check_bounds("uniform", {1, 2}, {0.5}, "the lower one (1) not above the upper one ({})",
               [](auto& g, auto n) {
                 uniform(g, {DType::float32, {2}}, 1, n);
               });
  check_bounds("normal", {0, 2}, {-1, infinity}, "the mean (0) and the deviation ({}) must be finite",
               [](auto& g, auto n) {
                 normal(g, {DType::float32, {2}}, 0, n);
               });
  check_bounds("dropout", {0, 0.99}, {-0.25, 1}, from_0_below_1,
               [](auto& g, auto n) { dropout(matrix(g), {.p = n}); });
  check_bounds("dropout", {0, 0.99}, {-0.25, 1}, from_0_below_1,
               [](auto& g, auto n) { dropout1d(lines(g), {.p = n}); });
  check_bounds("dropout", {0, 0.99}, {-0.25, 1}, from_0_below_1,
               [](auto& g, auto n) { drop_path(matrix(g), {.p = n}); });
}

TEST_CASE("bounds of the numbers of convolutions and pools") {
  check_bounds("adaptive_avg_pool2d", {1, 4}, {0}, "an extent of 1 or more along each axis (here 1 x {})",
               [](auto& g, auto n) { adaptive_avg_pool1d(lines(g), whole(n)); });
  check_bounds("adaptive_max_pool2d", {1, 4}, {0}, "an extent of 1 or more along each axis (here 1 x {})",
               [](auto& g, auto n) { adaptive_max_pool1d(lines(g), whole(n)); });
  check_bounds("adaptive_avg_pool2d", {1, 4}, {0}, "(here 2 x {})", [](auto& g, auto n) {
    adaptive_avg_pool2d(images(g), {2, whole(n)});
  });
  check_bounds("adaptive_max_pool2d", {1, 4}, {0}, "(here {} x 2)", [](auto& g, auto n) {
    adaptive_max_pool2d(images(g), {whole(n), 2});
  });
  check_bounds(
      "conv_transpose1d", {0, 1}, {-1, 2},
      "output_padding must be 0 or more and less than the stride, 2; it is {}", [](auto& g, auto n) {
        conv_transpose1d(value(g, {2, 4, 5}), value(g, {4, 3, 2}), {.stride = 2, .output_padding = whole(n)});
      });
  check_bounds("conv_transpose2d", {0, 2}, {-1, 3},
               "output_padding must be 0 or more and less than the stride, 3; it is {}", [](auto& g, auto n) {
                 conv_transpose2d(images(g), value(g, {4, 3, 1, 2}),
                                  {.stride = {1, 3}, .output_padding = {0, whole(n)}});
               });
  check_bounds("conv_transpose3d", {0, 1}, {-1, 2},
               "output_padding must be 0 or more and less than the stride, 2; it is {}", [](auto& g, auto n) {
                 conv_transpose3d(value(g, {2, 4, 3, 3, 3}), value(g, {4, 3, 2, 1, 1}),
                                  {.stride = {2, 1, 1}, .output_padding = {whole(n), 0, 0}});
               });
  check_bounds("conv_transpose1d", {1}, {2}, "nothing is left along L", [](auto& g, auto n) {
    conv_transpose1d(value(g, {2, 4, 2}), value(g, {4, 3, 3}), {.padding = whole(n)});
  });
  check_bounds("conv_transpose1d", {1}, {0}, "nothing is left along L", [](auto& g, auto n) {
    conv_transpose1d(value(g, {2, 4, whole(n)}), value(g, {4, 3, 3}));
  });
  check_bounds("conv_transpose2d", {1}, {2}, "nothing is left along H", [](auto& g, auto n) {
    conv_transpose2d(value(g, {2, 4, 2, 3}), value(g, {4, 3, 3, 1}), {.padding = {whole(n), 0}});
  });
  check_bounds("conv_transpose3d", {1}, {2}, "nothing is left along D", [](auto& g, auto n) {
    conv_transpose3d(value(g, {2, 4, 2, 3, 3}), value(g, {4, 3, 3, 1, 1}), {.padding = {whole(n), 0, 0}});
  });
  check_bounds("conv2d", {1, 2, 4}, {0, -1}, or_more("groups", 1), [](auto& g, auto n) {
    conv2d(images(g), value(g, {4, 4 / std::max<std::int64_t>(1, whole(n)), 2, 2}), {.groups = whole(n)});
  });
  check_bounds("lp_pool1d", {0.5, 3}, {0, -1, infinity}, finite_above_0("p"),
               [](auto& g, auto n) { lp_pool1d(lines(g), {.p = n, .kernel = 2}); });
  check_bounds("lp_pool2d", {0.5, 3}, {0, -1, infinity}, finite_above_0("p"),
               [](auto& g, auto n) { lp_pool2d(images(g), {.p = n, .kernel = 2}); });
  check_bounds("lp_pool3d", {0.5, 3}, {0, -1, infinity}, finite_above_0("p"),
               [](auto& g, auto n) { lp_pool3d(of_rank(g, 5), {.p = n, .kernel = 2}); });
  check_bounds("max_pool2d", {0, 1}, {2}, half_the_kernel, [](auto& g, auto n) {
    max_pool2d(images(g), {.kernel = {2, 3}, .padding = {whole(n), 0}});
  });
  check_bounds("avg_pool2d", {0, 1}, {2}, half_the_kernel, [](auto& g, auto n) {
    avg_pool2d(images(g), {.kernel = {3, 2}, .padding = {0, whole(n)}});
  });
  check_bounds("max_pool2d", {0, 1}, {2}, half_the_kernel,
               [](auto& g, auto n) { max_pool1d(lines(g), {.kernel = 2, .padding = whole(n)}); });
  check_bounds("avg_pool2d", {0, 1}, {2}, half_the_kernel,
               [](auto& g, auto n) { avg_pool1d(lines(g), {.kernel = 2, .padding = whole(n)}); });
}

TEST_CASE("bounds of the numbers of images") {
  check_bounds("normalise_image", {std::numeric_limits<float>::max()}, {1e39, infinity},
               "mean must be finite", [](auto& g, auto n) {
                 normalise_image(photo(g), {.scale = {{n}, {1}}});
               });
  check_bounds("normalise_image", {std::numeric_limits<float>::min()}, {0, 1e-46, -1}, "above 0",
               [](auto& g, auto n) {
                 normalise_image(photo(g), {.scale = {{0}, {n}}});
               });
  check_bounds("normalise_image", {1e39, std::numeric_limits<double>::max()}, {infinity},
               "mean must be finite", [](auto& g, auto n) {
                 normalise_image(photo(g), {.scale = {{n}, {1}}, .dtype = DType::float64});
               });
  check_bounds("normalise_image", {std::numeric_limits<double>::min()}, {0, 1e-310, -1}, "above 0",
               [](auto& g, auto n) {
                 normalise_image(photo(g), {.scale = {{0}, {n}}, .dtype = DType::float64});
               });
  check_bounds("interpolate", {1}, {0, -1, 2147483648},
               "axis 2 would have {} elements; it needs 1 to 2147483647",
               [](auto& g, auto n) { interpolate(images(g), {.size = {whole(n)}}); });
  check_bounds("interpolate", {0.25, 2}, {0, -1, infinity}, "a scale must be a finite number above 0, not {}",
               [](auto& g, auto n) { interpolate(images(g), {.scale = {n}}); });
  check_bounds("interpolate", {1}, {0}, "axis 3 is empty and has no pixels", [](auto& g, auto n) {
    interpolate(value(g, {2, 3, 4, whole(n)}), {.size = {2}});
  });
}

TEST_CASE("bounds of the numbers of norms and attention") {
  check_bounds("scaled_dot_product_attention", {0, -1}, {infinity}, "the scale must be a finite number",
               [](auto& g, auto n) {
                 const Node x = matrix(g);
                 scaled_dot_product_attention(x, x, x, {.scale = n});
               });
  check_bounds("rotary", {0.5}, {0, -1, infinity}, finite_above_0("base"), [](auto& g, auto n) {
    rotary(value(g, {3, 4}), {.base = n});
  });
  check_bounds("rotary", {2, 4}, {3}, "the last axis must have an even number of features",
               [](auto& g, auto n) {
                 rotary(value(g, {3, whole(n)}));
               });
  check_bounds("moments", {1e-9}, {0, -1}, above_0("epsilon"),
               [](auto& g, auto n) { moments(matrix(g), {.epsilon = n}); });
  check_bounds("batch_norm_inference", {1e-9}, {0, -1}, above_0("epsilon"), [](auto& g, auto n) {
    const Node c = value(g, {3});
    batch_norm_inference(matrix(g), c, c, c, c, {.epsilon = n});
  });
  check_bounds("layer_norm", {1e-9}, {0, -1}, above_0("epsilon"), [](auto& g, auto n) {
    const Node c = value(g, {3});
    layer_norm(matrix(g), c, c, {.epsilon = n});
  });
  check_bounds("standardise", {1e-9}, {0, -1}, above_0("epsilon"),
               [](auto& g, auto n) { standardise(matrix(g), 1, {.epsilon = n}); });
  check_bounds("standardise", {1, 2}, {0, -1, 3}, "axes must be at least 1 and at most the input's 2, not {}",
               [](auto& g, auto n) { standardise(matrix(g), whole(n)); });
  check_bounds("rms_norm", {0, 1}, {-1}, "epsilon must be at least 0, not {}",
               [](auto& g, auto n) { rms_norm(matrix(g), value(g, {3}), {.epsilon = n}); });
  check_bounds("group_norm", {1e-9}, {0, -1}, above_0("epsilon"),
               [](auto& g, auto n) { group_norm(images(g), 2, {.epsilon = n}); });
  check_bounds("group_norm", {1, 2, 4}, {0, -2, 3, 8},
               "the 4 channels must be divisible by the number of groups, 1 or more (here {})",
               [](auto& g, auto n) { group_norm(images(g), whole(n)); });
  check_bounds("instance_norm", {1e-9}, {0, -1}, above_0("epsilon"),
               [](auto& g, auto n) { instance_norm(images(g), {.epsilon = n}); });
  check_bounds("local_response_norm", {1, 4}, {0, -1}, or_more("number of neighbouring channels", 1),
               [](auto& g, auto n) { local_response_norm(images(g), whole(n)); });
  check_bounds("local_response_norm", {1e-9}, {0, -1}, above_0("k"),
               [](auto& g, auto n) { local_response_norm(images(g), 2, {.k = n}); });
}

TEST_CASE("bounds of the numbers of losses") {
  check_bounds("softmax_cross_entropy", {0, 1}, {-0.25, 1.25}, "label_smoothing must be from 0 to 1, not {}",
               [](auto& g, auto n) { softmax_cross_entropy(matrix(g), labels(g), {.label_smoothing = n}); });
  check_bounds("binary_cross_entropy_with_logits", {1, 4}, {2, 3}, "pos_weight must broadcast",
               [](auto& g, auto n) {
                 const Node x = lines(g);
                 binary_cross_entropy_with_logits(x, x, value(g, {3, whole(n)}));
               });
  check_bounds("binary_cross_entropy_with_logits", {1, 3}, {2, 4}, "pos_weight must broadcast",
               [](auto& g, auto n) {
                 const Node x = lines(g);
                 binary_cross_entropy_with_logits(x, x, value(g, {whole(n), 4}));
               });
  check_bounds("smooth_l1", {1e-9}, {0, -1, infinity}, finite_above_0("beta"),
               [](auto& g, auto n) { smooth_l1(matrix(g), matrix(g), n); });
  check_bounds("smooth_l1", {std::numeric_limits<float>::min(), std::numeric_limits<float>::max()},
               {1e-46, 1e39},
               "beta must be from 1.1754943508222875e-38 to 3.4028234663852886e+38 for float32",
               [](auto& g, auto n) { smooth_l1(matrix(g), matrix(g), n); });
  check_bounds("smooth_l1", {1e-6, 65504}, {1e-8, 1e5}, "for float16", [](auto& g, auto n) {
    smooth_l1(value(g, {3}, DType::float16), value(g, {3}, DType::float16), n);
  });
  check_bounds("huber", {1e-9}, {0, -1, infinity}, finite_above_0("delta"),
               [](auto& g, auto n) { huber(matrix(g), matrix(g), n); });
  check_bounds("gaussian_nll", {1e-9}, {0, -1, infinity}, finite_above_0("epsilon"),
               [](auto& g, auto n) { gaussian_nll(matrix(g), matrix(g), matrix(g), n); });
  check_bounds("margin_ranking", {0, -1}, {infinity}, finite("margin"),
               [](auto& g, auto n) { margin_ranking(matrix(g), matrix(g), matrix(g), n); });
  check_bounds("triplet_margin", {0, -1}, {infinity}, finite("margin"),
               [](auto& g, auto n) { triplet_margin(matrix(g), matrix(g), matrix(g), {.margin = n}); });
  check_bounds("triplet_margin", {0.5, infinity}, {0, -1}, above_0("p"),
               [](auto& g, auto n) { triplet_margin(matrix(g), matrix(g), matrix(g), {.p = n}); });
  check_bounds("triplet_margin", {0, -1}, {infinity}, finite("epsilon"),
               [](auto& g, auto n) { triplet_margin(matrix(g), matrix(g), matrix(g), {.epsilon = n}); });
  check_bounds("cosine_embedding", {0, -1}, {infinity}, finite("margin"),
               [](auto& g, auto n) { cosine_embedding(matrix(g), matrix(g), value(g, {2}), n); });
  check_bounds("cosine_similarity", {1e-9}, {0, -1, infinity}, finite_above_0("epsilon"),
               [](auto& g, auto n) { cosine_similarity(matrix(g), matrix(g), -1, n); });
  check_bounds("top_k_correct", {1, 9}, {0, -1}, or_more("k", 1),
               [](auto& g, auto n) { top_k_correct(matrix(g), labels(g), whole(n)); });
}

TEST_CASE("bounds of the numbers of orders, statistics and products") {
  check_bounds("tensordot", {0, 2}, {-1, 3}, "both operands must have the {} axes to sum over",
               [](auto& g, auto n) {
                 const Node x = value(g, {3, 3});
                 tensordot(x, x, whole(n));
               });
  check_bounds("topk", {0, 3}, {-1, 4}, "k must be from 0 to 3, not {}",
               [](auto& g, auto n) { topk(matrix(g), whole(n)); });
  check_bounds("kthvalue", {1, 3}, {0, 4}, "k must be from 1 to 3, not {}",
               [](auto& g, auto n) { kthvalue(matrix(g), whole(n)); });
  check_bounds("median", {1, 2}, {0}, "axis 0 is empty", [](auto& g, auto n) {
    median(value(g, {whole(n), 3}), 0);
  });
  check_bounds("quantile", {0, 1}, {-0.25, 1.25}, "q must be from 0 to 1, not {}",
               [](auto& g, auto n) { quantile(matrix(g), n); });
  check_bounds("quantile", {1, 2}, {0}, "axis 0 is empty", [](auto& g, auto n) {
    quantile(value(g, {whole(n), 3}), 0.5, {.axis = 0});
  });
  check_bounds("norm", {1}, {0}, "an axis is empty, and has no largest or smallest element",
               [](auto& g, auto n) {
                 norm(value(g, {2, whole(n)}), {.p = infinity, .axes = {1}});
               });
}

}  // namespace plexaura::testing::bounds_test
