// Kinds of nodes that reduce or accumulate along axes, and normalisations.

#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/cumsum.h"
#include "core/ops/labels.h"
#include "core/ops/layer_norm.h"
#include "core/ops/norms.h"
#include "core/ops/recurrence.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"
#include "tests/support/random_graph/sketch.h"

// A reduction of a over random axes.
#define PLEXAURA_SKETCH_REDUCTION(...)                                        \
  {                                                                           \
    [](Sketch& sketch) {                                                      \
      const Node a = sketch.of_rank(0, 5);                                    \
      const std::vector<std::int64_t> over = sketch.axes_of(a);               \
      const bool keep = sketch.coin();                                        \
      if (a.shape().elements() == 0) return;                                  \
      sketch.made(__VA_ARGS__, #__VA_ARGS__, "a, over, keep", a, over, keep); \
    }                                                                         \
  }

namespace plexaura::testing {

namespace {

std::vector<SketchEntry> reductions() {
  return {
      PLEXAURA_SKETCH_REDUCTION(sum(a, {.axes = over, .keepdims = keep}) * 0.3),
      PLEXAURA_SKETCH_REDUCTION(sum(a, {.axes = over, .keepdims = keep}) * 0.3),
      PLEXAURA_SKETCH_REDUCTION(mean(a, {.axes = over, .keepdims = keep})),
      PLEXAURA_SKETCH_REDUCTION(a - mean(a, {.axes = over, .keepdims = true})),
      PLEXAURA_SKETCH_REDUCTION(max(a, {.axes = over, .keepdims = keep})),
      PLEXAURA_SKETCH_REDUCTION(a - max(a, {.axes = over, .keepdims = true})),
      PLEXAURA_SKETCH_REDUCTION(min(a, {.axes = over, .keepdims = keep})),
      PLEXAURA_SKETCH_REDUCTION(tanh(prod(tanh(a) * 0.4 + 1, {.axes = over, .keepdims = keep}))),
      PLEXAURA_SKETCH_REDUCTION(logsumexp(a, {.axes = over, .keepdims = keep})),
      PLEXAURA_SKETCH_REDUCTION(var(a, {.axes = over, .keepdims = keep, .correction = 0})),
      PLEXAURA_SKETCH_REDUCTION(where(any(gt(a, 0.9137), {.axes = over, .keepdims = true}), a, a * 0.5)),
      PLEXAURA_SKETCH_REDUCTION(where(all(gt(a, -0.9137), {.axes = over, .keepdims = true}), a, a * 0.5)),
      PLEXAURA_SKETCH_REDUCTION(norm(exp(tanh(a)), {.p = 1, .axes = over, .keepdims = keep}) * 0.2),
      PLEXAURA_SKETCH_REDUCTION(norm(exp(tanh(a)), {.p = 2, .axes = over, .keepdims = keep}) * 0.2),
      PLEXAURA_SKETCH_REDUCTION(norm(exp(tanh(a)), {.p = 3, .axes = over, .keepdims = keep}) * 0.2),
  };
}

void add_deviation(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const Node b = sketch.leaf(a.shape());
  if (a.shape().elements() < 3) return;
  PLEXAURA_SKETCH(std_dev(a * 0.1 + b), a, b);
}

void add_softmax(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t axis = sketch.axis_of(a);
  PLEXAURA_SKETCH(softmax(a, axis), a, axis);
  PLEXAURA_SKETCH(log_softmax(a, axis) * 0.5, a, axis);
}

void add_argmax(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 4);
  const Node b = sketch.leaf(a.shape());
  const std::int64_t classes = a.shape()[a.shape().rank() - 1];
  const DType dtype = sketch.dtype();
  PLEXAURA_SKETCH(a * one_hot(argmax(b, -1), classes, dtype), a, b, classes, dtype);
  PLEXAURA_SKETCH(a * one_hot(argmin(b, -1), classes, dtype), a, b, classes, dtype);
}

void add_top_k(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 2);
  const Node b = sketch.leaf(a.shape());
  const Node i = sketch.integers({a.shape()[0]}, 0, a.shape()[1]);
  PLEXAURA_SKETCH(a * (0.3 + 0.1 * cast(top_k_correct(b, i), a.dtype())), a, b, i);
}

void add_cumulations(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const std::int64_t along = sketch.axis_of(a);
  const bool less = sketch.coin();
  const bool back = sketch.coin();
  PLEXAURA_SKETCH(cumsum(a, {.axis = along, .exclusive = less, .reverse = back}) * 0.3, a, along, less, back);
  PLEXAURA_SKETCH(tanh(cumprod(tanh(a) + 0.3, along)), a, along);
}

void add_recurrence(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const Node b = sketch.like(a.shape());
  const std::int64_t along = sketch.axis_of(a);
  const bool back = sketch.coin();
  PLEXAURA_SKETCH(linear_recurrence(tanh(a), b, {.axis = along, .reverse = back}), a, b, along, back);
}

void add_layer_norm(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const Shape last{a.shape()[a.shape().rank() - 1]};
  const Node scale = sketch.like(last);
  const Node shift = sketch.like(last);
  PLEXAURA_SKETCH(layer_norm(a, scale, shift, {.epsilon = 0.01}), a, scale, shift);
  PLEXAURA_SKETCH(rms_norm(a, scale, {.epsilon = 0.01}), a, scale);
  PLEXAURA_SKETCH(standardise(a, 1, {.epsilon = 0.01}), a);
}

void add_batch_norm(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 4);
  const Shape channels{a.shape()[1]};
  const Node scale = sketch.like(channels);
  const Node shift = sketch.like(channels);
  PLEXAURA_SKETCH(batch_norm(a, scale, shift, {.epsilon = 0.01}).y, a, scale, shift);
  PLEXAURA_SKETCH(relu(batch_norm(a, scale, shift, {.epsilon = 0.01}).y), a, scale, shift);
}

void add_batch_norm_inference(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 4);
  const Shape channels{a.shape()[1]};
  const Node scale = sketch.like(channels);
  const Node centre = sketch.like(channels);
  PLEXAURA_SKETCH(batch_norm_inference(a, scale, centre, centre, square(scale) + 0.3), a, scale, centre);
  PLEXAURA_SKETCH(moments(a, {.epsilon = 0.01}).inverse, a);
  PLEXAURA_SKETCH(moments(a, {.epsilon = 0.01}).variance - moments(a, {.epsilon = 0.01}).mean, a);
}

void add_group_norm(Sketch& sketch) {
  const Node a = sketch.of_rank(3, 4);
  const std::int64_t groups = a.shape()[1] % 2 == 0 ? 2 : 1;
  const Shape channels{a.shape()[1]};
  const Node scale = sketch.like(channels);
  const Node shift = sketch.like(channels);
  PLEXAURA_SKETCH(group_norm(a, groups, scale, shift, {.epsilon = 0.01}), a, groups, scale, shift);
  PLEXAURA_SKETCH(instance_norm(a, scale, shift, {.epsilon = 0.01}), a, scale, shift);
}

void add_local_response(Sketch& sketch) {
  const Node a = sketch.of_rank(3, 4);
  const std::int64_t width = sketch.from(1, 4);
  PLEXAURA_SKETCH(local_response_norm(a, width, {.alpha = 0.3}), a, width);
}

}  // namespace

std::vector<SketchEntry> reducing_entries() {
  std::vector<SketchEntry> all = reductions();
  for (const auto add :
       {add_deviation, add_softmax, add_argmax, add_top_k, add_cumulations, add_recurrence, add_layer_norm,
        add_batch_norm, add_batch_norm_inference, add_group_norm, add_local_response})
    all.push_back({add});
  return all;
}

}  // namespace plexaura::testing
