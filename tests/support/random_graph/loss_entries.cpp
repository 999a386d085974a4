// Losses.

#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/element_losses.h"
#include "core/ops/losses.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "core/ops/vector_losses.h"
#include "tests/support/random_graph/sketch.h"

// A loss of values a and b of one shape, and of c, a leaf of that shape.
#define PLEXAURA_SKETCH_LOSS(...)                                 \
  {                                                               \
    [](Sketch& sketch) {                                          \
      const Node a = sketch.of_rank(1, 4);                        \
      const Node b = sketch.like(a.shape());                      \
      const Node c = sketch.leaf(a.shape());                      \
      sketch.made(__VA_ARGS__, #__VA_ARGS__, "a, b, c", a, b, c); \
    }                                                             \
  }

namespace plexaura::testing {

namespace {

std::vector<SketchEntry> losses() {
  return {
      PLEXAURA_SKETCH_LOSS(mse(a, b)),
      PLEXAURA_SKETCH_LOSS(squared_error(a, b, Reduction::none) * 0.3),
      PLEXAURA_SKETCH_LOSS(l1(a, c, Reduction::none)),
      PLEXAURA_SKETCH_LOSS(smooth_l1(a, c, 0.7)),
      PLEXAURA_SKETCH_LOSS(huber(a, c, 0.7)),
      PLEXAURA_SKETCH_LOSS(binary_cross_entropy(sigmoid(a), sigmoid(b))),
      PLEXAURA_SKETCH_LOSS(binary_cross_entropy_with_logits(a, sigmoid(b), Reduction::none) * 0.3),
      PLEXAURA_SKETCH_LOSS(kl_div(log_softmax(a), softmax(b))),
      PLEXAURA_SKETCH_LOSS(poisson_nll(tanh(a), b)),
      PLEXAURA_SKETCH_LOSS(gaussian_nll(a, b, square(c) + 0.3)),
      PLEXAURA_SKETCH_LOSS(hinge(a, sign(c))),
      PLEXAURA_SKETCH_LOSS(margin_ranking(a, b, sign(c), 0.137)),
      PLEXAURA_SKETCH_LOSS(triplet_margin(a, b, c, {.margin = 0.737})),
  };
}

void add_cosine_embedding(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 2);
  const Node b = sketch.leaf(a.shape());
  const Node c = sketch.leaf({a.shape()[0]});
  PLEXAURA_SKETCH(cosine_embedding(exp(tanh(a)), b, sign(c), 0.137), a, b, c);
}

void add_cross_entropy(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 2);
  const std::int64_t classes = a.shape()[1];
  const Node labels = sketch.integers({a.shape()[0]}, 0, classes);
  const Node w = sketch.leaf({classes});
  PLEXAURA_SKETCH(softmax_cross_entropy(a, labels), a, labels);
  PLEXAURA_SKETCH(softmax_cross_entropy(a, labels, {.reduction = Reduction::none}), a, labels);
  PLEXAURA_SKETCH(softmax_cross_entropy(a, labels, sigmoid(w), {.ignore = 0, .label_smoothing = 0.1}), a,
                  labels, w);
  PLEXAURA_SKETCH(nll(log_softmax(a), labels, {.reduction = Reduction::none}), a, labels);
}

void add_soft_targets(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 2);
  const Node b = sketch.like(a.shape());
  PLEXAURA_SKETCH(softmax_cross_entropy(a, softmax(b)), a, b);
}

}  // namespace

std::vector<SketchEntry> loss_entries() {
  std::vector<SketchEntry> all = losses();
  for (const auto add : {add_cosine_embedding, add_cross_entropy, add_cross_entropy, add_soft_targets})
    all.push_back({add});
  return all;
}

}  // namespace plexaura::testing
