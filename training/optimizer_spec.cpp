#include "training/optimizer_spec.h"

#include <cmath>
#include <fmt/format.h>

#include "core/error.h"
#include "core/ops/binary.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

class UpdateBuilder {
 public:
  UpdateBuilder(Graph& graph, const OptimizerSpec& optimizer, const ArenaTypes& types)
      : graph_(graph), optimizer_(optimizer), types_(types), dtype_(types.values) {
    if (optimizer_.scaled_loss) divisor_ = graph_.step_scalar(StepScalar::loss_scale, dtype_);
  }

  // Gradients that are too long are divided by what they are longer than max_gradient_norm.
  void limit_norm(std::span<const Bucket> buckets) {
    Node squares;
    for (const Bucket& bucket : buckets) {
      const Node part = sum(square(as_value(slice(ArenaKind::gradient, bucket))));
      squares = squares ? squares + part : part;
    }
    const Node excess = sqrt(squares) / optimizer_.max_gradient_norm;
    divisor_ = divisor_ ? maximum(excess, divisor_) : maximum(excess, 1);
  }

  void step(const Bucket& bucket) {
    const Node value = slice(ArenaKind::value, bucket);
    const Node grad = as_value(slice(ArenaKind::gradient, bucket));
    const Node rate = graph_.step_scalar(StepScalar::learning_rate, dtype_);
    if (optimizer_.kind == OptimizerSpec::Kind::sgd)
      sgd(bucket, value, grad, rate);
    else
      adam(bucket, value, grad, rate);
  }

  void apply_changes(const Bucket& buffers) {
    const Node value = slice(ArenaKind::value, buffers);
    update_value(buffers, value, value + slice(ArenaKind::gradient, buffers));
  }

 private:
  Node slice(ArenaKind arena, const Bucket& bucket) {
    const DType dtype = arena == ArenaKind::gradient ? bucket.dtype : dtype_;
    return graph_.arena_slice({arena, 0, bucket.offset, bucket.count}, dtype);
  }

  Node state(std::int64_t index, const Bucket& bucket) {
    return graph_.arena_slice({ArenaKind::state, index, bucket.offset, bucket.count}, types_.states);
  }

  static Node as(DType dtype, const Node& node) { return node.dtype() == dtype ? node : cast(node, dtype); }
  Node as_value(const Node& node) const { return as(dtype_, node); }

  void update_state(const Node& state, const Node& next) { graph_.update(state, as(types_.states, next)); }

  void update_value(const Bucket& bucket, const Node& value, const Node& next) {
    graph_.update(value, next);
    if (!types_.shadow) return;
    const ArenaSlice shadow{ArenaKind::shadow, 0, bucket.offset, bucket.count};
    graph_.update(graph_.arena_slice(shadow, *types_.shadow), as(*types_.shadow, next));
  }

  std::vector<DecaySegment> decay(const Bucket& bucket) const {
    if (optimizer_.weight_decay == 0) return {};
    return {{0, bucket.count, optimizer_.weight_decay}};
  }

  void sgd(const Bucket& bucket, const Node& value, const Node& grad, const Node& rate) {
    const Node momentum = optimizer_.momentum != 0 ? state(0, bucket) : Node();
    const SgdResult next = sgd_step(value, grad, momentum ? as_value(momentum) : Node(), rate,
                                    {optimizer_.momentum, optimizer_.nesterov, decay(bucket)}, divisor_);
    update_value(bucket, value, next.value);
    if (momentum) update_state(momentum, next.momentum);
  }

  void adam(const Bucket& bucket, const Node& value, const Node& grad, const Node& rate) {
    const Node mean = state(0, bucket);
    const Node square = state(1, bucket);
    const Node step = graph_.step_scalar(StepScalar::step, dtype_);
    const bool decoupled = optimizer_.kind == OptimizerSpec::Kind::adamw;
    const AdamResult next = adam_step(
        value, grad, as_value(mean), as_value(square), rate, step,
        {optimizer_.beta1, optimizer_.beta2, optimizer_.epsilon, decoupled, decay(bucket)}, divisor_);
    update_value(bucket, value, next.value);
    update_state(mean, next.mean);
    update_state(square, next.square);
  }

  Graph& graph_;
  const OptimizerSpec& optimizer_;
  const ArenaTypes& types_;
  DType dtype_;   // of the values: what steps are computed in
  Node divisor_;  // of the gradients; empty: none
};

void check_optimizer(bool holds, std::string_view option, double value, std::string_view rule) {
  if (!holds) throw UserError(fmt::format("the optimizer has {} = {}; it must be {}", option, value, rule));
}

bool is_share(double value) { return value >= 0 && value < 1; }

void check(const OptimizerSpec& optimizer) {
  constexpr std::string_view share = "at least 0 and less than 1";
  check_optimizer(optimizer.kind <= OptimizerSpec::Kind::adamw, "kind", static_cast<double>(optimizer.kind),
                  "sgd, adam or adamw");
  check_optimizer(is_share(optimizer.momentum), "momentum", optimizer.momentum, share);
  check_optimizer(!optimizer.nesterov || optimizer.momentum > 0, "momentum", optimizer.momentum,
                  "above 0 where nesterov is set");
  check_optimizer(optimizer.kind == OptimizerSpec::Kind::sgd || optimizer.momentum == 0, "momentum",
                  optimizer.momentum, "0 for adam and adamw, whose momentum is beta1");
  check_optimizer(is_share(optimizer.beta1), "beta1", optimizer.beta1, share);
  check_optimizer(is_share(optimizer.beta2), "beta2", optimizer.beta2, share);
  check_optimizer(std::isfinite(optimizer.epsilon) && optimizer.epsilon > 0, "epsilon", optimizer.epsilon,
                  "a number above 0");
  check_optimizer(std::isfinite(optimizer.weight_decay) && optimizer.weight_decay >= 0, "weight_decay",
                  optimizer.weight_decay, "a number from 0 on");
  check_optimizer(std::isfinite(optimizer.max_gradient_norm) && optimizer.max_gradient_norm >= 0,
                  "max_gradient_norm", optimizer.max_gradient_norm, "a number above 0, or 0 for no limit");
}

}  // namespace

std::string_view optimizer_name(const OptimizerSpec& optimizer) {
  if (optimizer.kind == OptimizerSpec::Kind::sgd) return "sgd";
  return optimizer.kind == OptimizerSpec::Kind::adam ? "adam" : "adamw";
}

std::int64_t state_count(const OptimizerSpec& optimizer) {
  if (optimizer.kind != OptimizerSpec::Kind::sgd) return 2;
  return optimizer.momentum != 0 ? 1 : 0;
}

void build_update(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement,
                  std::span<const Bucket> buckets) {
  check(optimizer);
  UpdateBuilder builder(graph, optimizer, placement.types);
  const std::span<const Bucket> trainables = buckets.first(buckets.size() - 1);
  if (optimizer.max_gradient_norm > 0 && !trainables.empty()) builder.limit_norm(trainables);
  for (const Bucket& bucket : trainables) builder.step(bucket);
  const std::int64_t buffers = placement.count(ParameterRole::buffer);
  if (buffers > 0)
    builder.apply_changes({placement.count(ParameterRole::trainable), buffers, placement.types.values});
}

}  // namespace plexaura
