// Convolutions, pools and other kinds of nodes on signals, images and volumes.

#include "core/ops/adaptive_pool.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv1d.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/interpolate.h"
#include "core/ops/lp_pool.h"
#include "core/ops/pool1d.h"
#include "core/ops/pool2d.h"
#include "core/ops/pool3d.h"
#include "core/ops/unary.h"
#include "tests/support/random_graph/sketch.h"

namespace plexaura::testing {

namespace {

// The channels of a convolution: sometimes as many as a block has, or one more.
std::int64_t channels(Sketch& sketch) {
  constexpr std::int64_t usual[] = {1, 2, 3, 4, 8, 16, 17};
  return usual[sketch.below(7)];
}

Node image(Sketch& sketch) {
  if (sketch.below(3) > 0) return sketch.of_rank(4, 4);
  return sketch.leaf({sketch.from(1, 2), channels(sketch), sketch.from(2, 5), sketch.from(2, 5)});
}

void add_conv1d(Sketch& sketch) {
  const Node a = sketch.of_rank(3, 3);
  const std::int64_t step = sketch.from(1, 2);
  const std::int64_t spread = sketch.from(1, 2);
  const Node w = sketch.leaf({channels(sketch), a.shape()[1], sketch.from(1, 3)});
  PLEXAURA_SKETCH(conv1d(a, w, {.stride = step, .padding = 2, .dilation = spread}) * 0.3, a, w, step, spread);
}

void add_conv2d(Sketch& sketch) {
  const Node a = image(sketch);
  const std::int64_t parts = a.shape()[1] % 2 == 0 && sketch.coin() ? 2 : 1;
  const std::int64_t step = sketch.from(1, 2);
  const std::int64_t spread = sketch.from(1, 2);
  const std::int64_t filters = parts * channels(sketch);
  const Node w = sketch.leaf({filters, a.shape()[1] / parts, sketch.from(1, 3), sketch.from(1, 3)});
  const Node bias = sketch.leaf({filters});
  PLEXAURA_SKETCH(conv2d(a, w, {.stride = step, .padding = 2, .dilation = spread, .groups = parts}) * 0.3, a,
                  w, step, spread, parts);
  PLEXAURA_SKETCH(relu(conv2d(a, w, bias, {.stride = step, .padding = 2, .groups = parts})) * 0.3, a, w, bias,
                  step, parts);
}

void add_conv_norm(Sketch& sketch) {
  const Node a = image(sketch);
  const std::int64_t filters = channels(sketch);
  const Node w = sketch.leaf({filters, a.shape()[1], 3, 3});
  const Node scale = sketch.leaf({filters});
  const Node shift = sketch.leaf({filters});
  const Node y = conv2d(a, w, {.padding = 1});
  sketch.made(y, "conv2d(a, w, {.padding = 1})", "a, w", a, w);
  const Node b = sketch.like(y.shape());
  PLEXAURA_SKETCH(relu(batch_norm(y, scale, shift, {.epsilon = 0.01}).y + b), y, scale, shift, b);
}

void add_conv3d(Sketch& sketch) {
  const Node a = sketch.of_rank(5, 5);
  const Node w = sketch.leaf({sketch.from(1, 3), a.shape()[1], 2, 2, 2});
  const std::int64_t step = sketch.from(1, 2);
  PLEXAURA_SKETCH(conv3d(a, w, {.stride = step, .padding = 1}) * 0.3, a, w, step);
}

void add_conv_transpose(Sketch& sketch) {
  const Node a = image(sketch);
  const std::int64_t step = sketch.from(1, 2);
  const Node w = sketch.leaf({a.shape()[1], sketch.from(1, 4), 3, 2});
  PLEXAURA_SKETCH(conv_transpose2d(a, w, {.stride = step}) * 0.3, a, w, step);
}

void add_conv_transpose1d(Sketch& sketch) {
  const Node a = sketch.of_rank(3, 3);
  const Node w = sketch.leaf({a.shape()[1], sketch.from(1, 4), 3});
  const Node bias = sketch.leaf({w.shape()[1]});
  PLEXAURA_SKETCH(conv_transpose1d(a, w, bias, {.stride = 2, .output_padding = 1}) * 0.3, a, w, bias);
}

void add_pool1d(Sketch& sketch) {
  const Node a = sketch.of_rank(3, 3);
  const bool up = sketch.coin();
  PLEXAURA_SKETCH(max_pool1d(a, {.kernel = 2, .padding = 1, .ceil_mode = up}), a, up);
  PLEXAURA_SKETCH(avg_pool1d(a, {.kernel = 2, .padding = 1, .ceil_mode = up}), a, up);
  PLEXAURA_SKETCH(adaptive_avg_pool1d(a, 3), a);
}

void add_pool2d(Sketch& sketch) {
  const Node a = image(sketch);
  const std::int64_t step = sketch.from(1, 3);
  const bool up = sketch.coin();
  PLEXAURA_SKETCH(max_pool2d(a, {.kernel = 2, .stride = Size2d(step), .padding = 1, .ceil_mode = up}), a,
                  step, up);
  PLEXAURA_SKETCH(avg_pool2d(a, {.kernel = 3, .stride = Size2d(step), .padding = 1, .count_include_pad = up}),
                  a, step, up);
}

void add_global_pools(Sketch& sketch) {
  const Node a = image(sketch);
  PLEXAURA_SKETCH(global_avg_pool(a), a);
  PLEXAURA_SKETCH(global_max_pool(a), a);
  PLEXAURA_SKETCH(adaptive_max_pool2d(a, {2, 3}), a);
  PLEXAURA_SKETCH(lp_pool2d(exp(tanh(a)), {.kernel = 2, .ceil_mode = true}) * 0.3, a);
}

void add_pool3d(Sketch& sketch) {
  const Node a = sketch.of_rank(5, 5);
  PLEXAURA_SKETCH(max_pool3d(a, {.kernel = 2, .stride = Size3d(1), .padding = 1}), a);
  PLEXAURA_SKETCH(avg_pool3d(a, {.kernel = 2, .stride = Size3d(2), .padding = 1}), a);
  PLEXAURA_SKETCH(adaptive_avg_pool3d(a, 2), a);
  PLEXAURA_SKETCH(adaptive_max_pool3d(a, {1, 2, 1}), a);
}

void add_interpolate(Sketch& sketch) {
  const Node a = image(sketch);
  const bool ends = sketch.coin();
  const std::int64_t h = sketch.from(1, 5);
  const std::int64_t w = sketch.from(1, 5);
  PLEXAURA_SKETCH(interpolate(a, {.size = {h, w}}), a, h, w);
  PLEXAURA_SKETCH(interpolate(a, {.size = {h, w}, .mode = InterpolateMode::bilinear, .align_corners = ends}),
                  a, h, w, ends);
  PLEXAURA_SKETCH(interpolate(a, {.size = {h, w}, .mode = InterpolateMode::bicubic, .align_corners = ends}),
                  a, h, w, ends);
}

void add_shuffle(Sketch& sketch) {
  const Node a =
      sketch.leaf({sketch.from(1, 2), 4 * sketch.from(1, 2), sketch.from(1, 4), sketch.from(1, 4)});
  PLEXAURA_SKETCH(pixel_shuffle(a, 2), a);
  PLEXAURA_SKETCH(pixel_unshuffle(pixel_shuffle(a, 2), 2), a);
}

}  // namespace

std::vector<SketchEntry> window_entries() {
  return {{add_conv1d},           {add_conv2d},    {add_conv2d},      {add_conv2d},
          {add_conv_norm},        {add_conv_norm}, {add_conv3d},      {add_conv_transpose},
          {add_conv_transpose1d}, {add_pool1d},    {add_pool2d},      {add_pool2d},
          {add_global_pools},     {add_pool3d},    {add_interpolate}, {add_shuffle}};
}

}  // namespace plexaura::testing
