// Loops.

#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/ops/trigonometry.h"
#include "core/ops/unary.h"
#include "core/scan/scan.h"
#include "tests/support/random_graph/sketch.h"

namespace plexaura::testing {

namespace {

using Nodes = std::vector<Node>;

Shape element(const Node& stacked) {
  return Shape(std::vector<std::int64_t>(stacked.shape().begin() + 1, stacked.shape().end()));
}

// A recurrence with a captured value and an output.
void add_recurrent(Sketch& sketch) {
  const Node a = sketch.of_rank(1, 4);
  const Node c = sketch.like(element(a));
  const Node b = sketch.beside(c.shape());
  if (broadcast(b.shape(), c.shape()) != c.shape()) return;
  const bool back = sketch.coin();
  const bool again = sketch.coin();
  const std::int64_t wanted = sketch.below(2);
  const auto loop = [&](const Node& xs, const Node& carry, const Node& weight, bool reverse, bool recompute) {
    return scan({xs}, {carry},
                [&](const Nodes& carries, const Nodes& x) {
                  const Node next = tanh(carries[0] * weight + x[0]);
                  return ScanStep{{next}, {next * carries[0] - exp(weight * 0.1)}};
                },
                {.reverse = reverse, .recompute = recompute});
  };
  const ScanStep step = loop(a, c, b, back, again);
  sketch.made(
      wanted == 0 ? step.carries[0] : step.outputs[0],
      "scan({a}, {c}, [&](auto& carry, auto& x) { const Node next = tanh(carry[0] * b + x[0]); return "
      "ScanStep{{next}, {next * carry[0] - exp(b * 0.1)}}; }, {.reverse = back, .recompute = "
      "again}).carries_or_outputs(wanted)",
      "a, c, b, back, again, wanted", a, c, b, back, again, wanted);
}

// A net with a matrix, dropout, and two carries of which one does not change.
void add_recurrent_net(Sketch& sketch) {
  const Node a = sketch.of_rank(3, 3);
  const std::int64_t width = a.shape()[2];
  const Node w = sketch.leaf({width, width});
  const Node h = sketch.leaf({a.shape()[1], width});
  const bool same = sketch.coin();
  const bool again = sketch.coin();
  const ScanStep step = scan({a}, {h, h},
                             [&](const Nodes& carry, const Nodes& x) {
                               const Node y = sigmoid(matmul(carry[0], w) * 0.3 + dropout(x[0], {.p = 0.3}));
                               return ScanStep{{y * carry[1], carry[1]}, {sum(y, 0)}};
                             },
                             {.recompute = again, .same_draws = same});
  const std::string_view text =
      "scan({a}, {h, h}, [&](auto& carry, auto& x) { const Node y = sigmoid(matmul(carry[0], w) * 0.3 + "
      "dropout(x[0], {.p "
      "= 0.3})); return ScanStep{{y * carry[1], carry[1]}, {sum(y, 0)}}; }, {.recompute = again, .same_draws "
      "= same})";
  sketch.made(step.carries[0], std::string(text) + ".carries[0]", "a, h, w, again, same", a, h, w, again,
              same);
  sketch.made(step.outputs[0] * 0.3, std::string(text) + ".outputs[0] * 0.3", "a, h, w, again, same", a, h, w,
              again, same);
}

// A loop within a loop, without xs of its own.
void add_nested(Sketch& sketch) {
  const Node a = sketch.of_rank(2, 3);
  const Node c = sketch.like(element(a));
  const std::int64_t times = sketch.from(0, 3);
  const auto body = [&](const Nodes& carry, const Nodes& x) {
    const ScanStep inner = scan({}, carry,
                                [&](const Nodes& own, const Nodes&) {
                                  return ScanStep{{sin(own[0] + x[0])}, {}};
                                },
                                {.steps = times});
    return ScanStep{inner.carries, {inner.carries[0] - softmax(x[0], 0)}};
  };
  sketch.made(scan({a}, {c}, body).outputs[0],
              "scan({a}, {c}, [&](auto& carry, auto& x) { const auto inner = scan({}, carry, [&](auto& own, "
              "auto&) { return "
              "ScanStep{{sin(own[0] + x[0])}, {}}; }, {.steps = times}); return ScanStep{inner.carries, "
              "{inner.carries[0] - "
              "softmax(x[0], 0)}}; }).outputs[0]",
              "a, c, times", a, c, times);
}

}  // namespace

std::vector<SketchEntry> loop_entries() {
  return {{add_recurrent},     {add_recurrent}, {add_recurrent}, {add_recurrent_net},
          {add_recurrent_net}, {add_nested},    {add_nested}};
}

}  // namespace plexaura::testing
