#include "training/optimizer_spec.h"

#include <cmath>
#include <fmt/format.h>

#include "core/error.h"
#include "core/ops/binary.h"
#include "core/ops/optimizer_steps.h"

namespace plexaura {

namespace {

class UpdateBuilder {
 public:
  UpdateBuilder(Graph& graph, const OptimizerSpec& optimizer, DType dtype)
      : graph_(graph), optimizer_(optimizer), dtype_(dtype) {}

  void step(const Bucket& bucket) {
    const Node value = slice(ArenaKind::value, 0, bucket);
    const Node grad = slice(ArenaKind::gradient, 0, bucket);
    const Node rate = graph_.step_scalar(StepScalar::learning_rate, dtype_);
    if (optimizer_.kind == OptimizerSpec::Kind::sgd)
      sgd(bucket, value, grad, rate);
    else
      adam(bucket, value, grad, rate);
  }

  void apply_changes(const Bucket& buffers) {
    const Node value = slice(ArenaKind::value, 0, buffers);
    graph_.update(value, value + slice(ArenaKind::gradient, 0, buffers));
  }

 private:
  Node slice(ArenaKind arena, std::int64_t state, const Bucket& bucket) {
    return graph_.arena_slice({arena, state, bucket.offset, bucket.count}, dtype_);
  }

  std::vector<DecaySegment> decay(const Bucket& bucket) const {
    if (optimizer_.weight_decay == 0) return {};
    return {{0, bucket.count, optimizer_.weight_decay}};
  }

  Node loss_scale() const {
    return optimizer_.scaled_loss ? graph_.step_scalar(StepScalar::loss_scale, dtype_) : Node();
  }

  void sgd(const Bucket& bucket, const Node& value, const Node& grad, const Node& rate) {
    const Node momentum = optimizer_.momentum != 0 ? slice(ArenaKind::state, 0, bucket) : Node();
    const SgdResult next = sgd_step(value, grad, momentum, rate,
                                    {optimizer_.momentum, optimizer_.nesterov, decay(bucket)}, loss_scale());
    graph_.update(value, next.value);
    if (momentum) graph_.update(momentum, next.momentum);
  }

  void adam(const Bucket& bucket, const Node& value, const Node& grad, const Node& rate) {
    const Node mean = slice(ArenaKind::state, 0, bucket);
    const Node square = slice(ArenaKind::state, 1, bucket);
    const Node step = graph_.step_scalar(StepScalar::step, dtype_);
    const bool decoupled = optimizer_.kind == OptimizerSpec::Kind::adamw;
    const AdamResult next = adam_step(
        value, grad, mean, square, rate, step,
        {optimizer_.beta1, optimizer_.beta2, optimizer_.epsilon, decoupled, decay(bucket)}, loss_scale());
    graph_.update(value, next.value);
    graph_.update(mean, next.mean);
    graph_.update(square, next.square);
  }

  Graph& graph_;
  const OptimizerSpec& optimizer_;
  DType dtype_;
};

void require(bool holds, std::string_view option, double value, std::string_view rule) {
  if (!holds) throw UserError(fmt::format("the optimizer has {} = {}; it must be {}", option, value, rule));
}

bool is_share(double value) { return value >= 0 && value < 1; }

void check(const OptimizerSpec& optimizer) {
  constexpr std::string_view share = "at least 0 and less than 1";
  require(optimizer.kind <= OptimizerSpec::Kind::adamw, "kind", static_cast<double>(optimizer.kind),
          "sgd, adam or adamw");
  require(is_share(optimizer.momentum), "momentum", optimizer.momentum, share);
  require(!optimizer.nesterov || optimizer.momentum > 0, "momentum", optimizer.momentum,
          "above 0 where nesterov is set");
  require(is_share(optimizer.beta1), "beta1", optimizer.beta1, share);
  require(is_share(optimizer.beta2), "beta2", optimizer.beta2, share);
  require(std::isfinite(optimizer.epsilon) && optimizer.epsilon > 0, "epsilon", optimizer.epsilon,
          "a number above 0");
  require(std::isfinite(optimizer.weight_decay) && optimizer.weight_decay >= 0, "weight_decay",
          optimizer.weight_decay, "a number from 0 on");
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
  UpdateBuilder builder(graph, optimizer, placement.dtype);
  for (const Bucket& bucket : buckets.first(buckets.size() - 1)) builder.step(bucket);
  const std::int64_t buffers = placement.count(ParameterRole::buffer);
  if (buffers > 0) builder.apply_changes({placement.count(ParameterRole::trainable), buffers});
}

}  // namespace plexaura
