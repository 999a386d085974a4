#include "training/optimizers/optimizer_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <ranges>
#include <utility>
#include <vector>

#include "core/ops/binary.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "core/step/step_metrics.h"
#include "training/optimizers/group_optimizers.h"
#include "training/optimizers/optimizer_checks.h"

namespace plexaura {

namespace {

using Kind = OptimizerSpec::Kind;

// Returns the ratio of two numbers that are not negative, or 1 if one of them is 0.
Node ratio_or_one(const Node& numerator, const Node& denominator) {
  const Node has_meaning = gt(minimum(numerator, denominator), 0);
  return where(has_meaning, numerator, 1) / where(has_meaning, denominator, 1);
}

// Divides the elements by the sum of their magnitudes before it squares them: squares of float32 numbers
// below 1e-23 are 0, and those of numbers above 2e19 infinite.
Node norm(const Node& vector) {
  const Node size = sum(abs(vector));
  const Node scale = where(gt(size, 0), size, 1);
  return scale * sqrt(sum(square(vector / scale)));
}

std::string kind_name(const OptimizerSpec& rule) {
  constexpr std::array<std::string_view, 7> names{"sgd",  "adam",    "adamw",  "lars",
                                                  "lamb", "rmsprop", "adagrad"};
  if (rule.kind == Kind::rmsprop && rule.centered) return "centered rmsprop";
  return std::string(names.at(static_cast<std::size_t>(rule.kind)));
}

// Returns a name by which rules with different states differ. Where several rules share the states of a store, the number
// of states does not show it.
std::string name_of_states(const OptimizerSpec& rule) {
  return kind_name(rule) + (rule.momentum != 0 ? " with momentum" : "");
}

std::int64_t states_of_kind(const OptimizerSpec& rule) {
  if (!steps_like_sgd(rule.kind) && !divides_by_squares(rule.kind)) return 2;
  const std::int64_t squares = divides_by_squares(rule.kind) ? 1 : 0;
  return squares + (rule.centered ? 1 : 0) + (rule.momentum != 0 ? 1 : 0);
}

bool has_own_optimizer(const ParameterGroup& group) { return group.options.optimizer.spec() != nullptr; }

class UpdateBuilder {
 public:
  UpdateBuilder(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement)
      : graph_(graph),
        optimizer_(optimizer),
        placement_(placement),
        types_(placement.types),
        dtype_(placement.types.values) {
    if (optimizer_.ema && types_.states != types_.values)
      throw UserError(
          fmt::format("the averages of parameters (OptimizerSpec::ema) are states of {}, and the parameters "
                      "are {}; give both "
                      "one type with ParameterStore::set_types()",
                      name_of(types_.states), name_of(types_.values)));
    if (optimizer_.scaled_loss) divisor_ = graph_.step_scalar(StepScalar::loss_scale, dtype_);
    if (!types_.scales_loss()) return;
    for (std::int64_t slot = 0; slot < scaling_count; ++slot)
      scaling_.push_back(graph_.arena_slice(slice_of(static_cast<ScalingSlot>(slot)), DType::float32));
    divisor_ = divisor_.is_empty() ? scaling(ScalingSlot::scale) : divisor_ * scaling(ScalingSlot::scale);
  }

  // Multiplies the divisor by the mean weight of a sample. If the weight of a step is 0, the step has no loss, and the
  // mean counts as 1.
  void divide_by_weight() {
    weight_ = reshape(tail(weight_slot), {});
    const Node mean = where(eq(weight_, 0), 1, weight_ / reshape(tail(TailSlot::samples), {}));
    divisor_ = divisor_.is_empty() ? mean : divisor_ * mean;
  }

  // If the norm of the divided gradients exceeds max_gradient_norm, raises the divisor until both are equal. With a
  // LossScale, a step whose norm is not finite is skipped.
  void look_at_norm(std::span<const Bucket> buckets) {
    Node squares;
    for (const Bucket& bucket : buckets) {
      const Node part = sum(square(as_value(slice(ArenaKind::gradient, bucket))));
      squares = squares.is_empty() ? part : squares + part;
    }
    if (optimizer_.max_gradient_norm > 0) {
      const Node excess = sqrt(squares) / optimizer_.max_gradient_norm;
      divisor_ = divisor_.is_empty() ? maximum(excess, 1) : maximum(excess, divisor_);
    }
    if (!types_.scales_loss()) return;
    is_good_ = le(squares, std::numeric_limits<float>::max());
    divisor_ = where(is_good_, divisor_, 0);
  }

  void step(const Bucket& bucket) {
    for (const auto& [slice, rule] : slices_by_rule(placement_, bucket, optimizer_)) {
      if (scales_each_parameter(rule->kind))
        step_each(slice, *rule);
      else
        step(slice, *rule, segments_of(placement_, slice, optimizer_.groups, optimizer_.weight_decay));
    }
  }

  // Updates consecutive buffers with the same rule in one node.
  void update_buffers(const UpdateOptions& options) {
    Bucket alike{placement_.count(ParameterRole::trainable), 0, types_.values};
    bool are_replaced = false;
    for (const Placement::Entry& entry : placement_.entries) {
      if (entry.role != ParameterRole::buffer) continue;
      const bool changes = !options.updated || options.updated->contains(entry.name);
      const bool is_replaced = options.replaced.contains(entry.name);
      if (!changes || is_replaced != are_replaced) {
        update_buffers(alike, are_replaced);
        alike = {changes ? entry.offset : entry.offset + entry.count, 0, types_.values};
        are_replaced = is_replaced;
      }
      if (changes) alike.count += entry.count;
    }
    update_buffers(alike, are_replaced);
  }

  // Checks that the loss and all gradients are finite. A number times 0 is 0 if the number is finite, and NaN otherwise,
  // so the sum of these products is 0 if all numbers are finite; a maximum might ignore a NaN. With a LossScale,
  // gradients that are not finite are no failure: the step is skipped. The failure of a rank is a failure in any case.
  void guard(std::span<const Bucket> buckets) {
    Node zero = reshape(tail(TailSlot::loss) * 0 + tail(TailSlot::failed), {});
    if (!weight_.is_empty()) zero = zero + weight_ * 0;
    for (const Bucket& bucket : buckets)
      if (scaling_.empty()) zero = zero + as_value(sum(slice(ArenaKind::gradient, bucket) * 0));
    is_good_ = eq(is_good_.is_empty() ? zero : where(is_good_, zero, 1), 0);
    divisor_ = where(is_good_, divisor_.is_empty() ? constant(1) : divisor_, 0);
    if (!scaling_.empty()) return;
    const Node failed = tail(TailSlot::failed);
    graph_.update(failed, where(is_good_, failed, 1));
  }

  // Updates the LossScale after a good or a skipped step.
  void adapt_loss_scale() {
    const Node scale = scaling(ScalingSlot::scale);
    const Node steps = where(is_good_, scaling(ScalingSlot::good_steps) + 1, 0);
    const Node grows = ge(steps, LossScale::growth_steps);
    const Node larger = where(grows, minimum(scale * 2, LossScale::most), scale);
    update_scaling(ScalingSlot::scale, where(is_good_, larger, maximum(scale / 2, LossScale::least)));
    update_scaling(ScalingSlot::good_steps, where(grows, 0, steps));
    update_scaling(ScalingSlot::skipped_steps, scaling(ScalingSlot::skipped_steps) + (1 - goodness()));
  }

 private:
  void update_buffers(const Bucket& buffers, bool are_replaced) {
    if (buffers.count == 0) return;
    const Node value = slice(ArenaKind::value, buffers);
    const Node brought = slice(ArenaKind::gradient, buffers);
    update_value(buffers, value, or_old(value, are_replaced ? brought : value + brought));
  }

  Node tail(TailSlot slot) {
    const std::int64_t offset = placement_.tail_offset() + static_cast<std::int64_t>(slot);
    return graph_.arena_slice({ArenaKind::gradient, 0, offset, 1}, dtype_);
  }

  Node constant(double value) { return graph_.constant(Tensor::scalar(value).cast(dtype_)); }

  Node slice(ArenaKind arena, const Bucket& bucket) {
    const DType dtype = arena == ArenaKind::gradient ? bucket.dtype : dtype_;
    return graph_.arena_slice({arena, 0, bucket.offset, bucket.count}, dtype);
  }

  Node state(std::int64_t index, const Bucket& bucket) {
    return graph_.arena_slice({ArenaKind::state, index, bucket.offset, bucket.count}, types_.states);
  }

  Node scaling(ScalingSlot slot) const { return reshape(scaling_.at(static_cast<std::size_t>(slot)), {}); }

  void update_scaling(ScalingSlot slot, const Node& next) {
    graph_.update(scaling_.at(static_cast<std::size_t>(slot)), reshape(next, {1}));
  }

  // Returns 1, or 0 for a step that is skipped.
  Node goodness() const { return cast(is_good_, dtype_); }
  Node or_old(const Node& old, const Node& next) const {
    return is_good_.is_empty() ? next : where(is_good_, next, old);
  }

  // Returns the number of this update, not counting skipped ones.
  Node update_number(DType dtype) {
    const Node step = graph_.step_scalar(StepScalar::step, dtype);
    return scaling_.empty() ? step : step - cast(scaling(ScalingSlot::skipped_steps), dtype);
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

  // Updates trained parameters and their averages.
  void update_weights(const Bucket& part, const Node& value, const Node& next) {
    update_value(part, value, next);
    if (!optimizer_.ema) return;
    const Node average = state(state_count(optimizer_) - 1, part);
    graph_.update(average, average + (next - average) * share_in_average());
  }

  // Returns the share of a new value in its average: 1 in the first update, before which averages are 0, and 0 in a step
  // that is skipped.
  Node share_in_average() {
    const Node share = where(eq(update_number(dtype_), 1), 1, constant(1 - *optimizer_.ema));
    return is_good_.is_empty() ? share : where(is_good_, share, 0);
  }

  Node learning_rate() { return graph_.step_scalar(StepScalar::learning_rate, dtype_); }

  void step_each(const Bucket& slice, const OptimizerSpec& rule) {
    for (const Placement::Entry& entry : placement_.entries)
      if (entry.offset >= slice.offset && entry.offset < slice.offset + slice.count)
        step(entry, slice.dtype, rule);
  }

  void step(const Placement::Entry& entry, DType gradients, const OptimizerSpec& rule) {
    const Bucket slice{entry.offset, entry.count, gradients};
    const ParameterGroup::Options group = group_of(entry.name, optimizer_.groups, optimizer_.weight_decay);
    if (entry.type.shape.rank() <= 1) return step(slice, rule, segments_with_rate(slice, group.rate));
    if (rule.kind == Kind::lars)
      lars(slice, rule, group);
    else
      lamb(slice, rule, group);
  }

  // Returns segments without decay.
  static std::vector<StepSegment> segments_with_rate(const Bucket& part, double rate) {
    if (rate == 1) return {};
    return {{0, part.count, 0, rate}};
  }

  void step(const Bucket& part, const OptimizerSpec& rule, std::vector<StepSegment> segments) {
    const Node grad = as_value(slice(ArenaKind::gradient, part));
    if (steps_like_sgd(rule.kind))
      sgd(part, rule, grad, std::move(segments), divisor_);
    else if (divides_by_squares(rule.kind))
      rms(part, rule, grad, std::move(segments));
    else
      adam(part, rule, grad, std::move(segments));
  }

  void sgd(const Bucket& part, const OptimizerSpec& rule, const Node& grad, std::vector<StepSegment> segments,
           const Node& divisor) {
    const Node value = slice(ArenaKind::value, part);
    const Node momentum = rule.momentum != 0 ? state(0, part) : Node();
    const SgdResult next =
        sgd_step(value, grad, momentum.is_empty() ? Node() : as_value(momentum), learning_rate(),
                 {rule.momentum, rule.nesterov, std::move(segments)}, divisor);
    update_weights(part, value, next.value);
    if (!momentum.is_empty()) update_state(momentum, next.momentum);
  }

  void adam(const Bucket& part, const OptimizerSpec& rule, const Node& grad,
            std::vector<StepSegment> segments) {
    const Node value = slice(ArenaKind::value, part);
    const Node mean = state(0, part);
    const Node square = state(1, part);
    const bool decoupled = rule.kind == Kind::adamw;
    const AdamResult next =
        adam_step(value, grad, as_value(mean), as_value(square), learning_rate(), update_number(dtype_),
                  {rule.beta1, rule.beta2, rule.epsilon, decoupled, std::move(segments)}, divisor_);
    update_weights(part, value, next.value);
    update_state(mean, next.mean);
    update_state(square, next.square);
  }

  void rms(const Bucket& part, const OptimizerSpec& rule, const Node& grad,
           std::vector<StepSegment> segments) {
    const bool is_adagrad = rule.kind == Kind::adagrad;
    RmsOptions options{.epsilon = rule.epsilon,
                       .momentum = rule.momentum,
                       .centered = rule.centered,
                       .segments = std::move(segments)};
    options.kept = is_adagrad ? 1 : rule.alpha;
    options.added = is_adagrad ? 1 : 1 - rule.alpha;
    options.initial = is_adagrad ? rule.initial_accumulator : 0;
    std::vector<Node> states;
    for (std::int64_t index = 0; index < states_of_kind(rule); ++index) states.push_back(state(index, part));
    const RmsState old{.square = as_value(states[0]),
                       .mean = options.centered ? as_value(states[1]) : Node(),
                       .momentum = options.momentum != 0 ? as_value(states.back()) : Node()};
    const Node value = slice(ArenaKind::value, part);
    const RmsResult next = rms_step(value, grad, old, decayed_rate(rule), std::move(options), divisor_);
    update_weights(part, value, next.value);
    update_state(states[0], next.state.square);
    if (!old.mean.is_empty()) update_state(states[1], next.state.mean);
    if (!old.momentum.is_empty()) update_state(states.back(), next.state.momentum);
  }

  // Returns the learning rate, which adagrad divides by a number that grows with each update.
  Node decayed_rate(const OptimizerSpec& rule) {
    if (rule.lr_decay == 0) return learning_rate();
    return learning_rate() / ((update_number(dtype_) - 1) * rule.lr_decay + 1);
  }

  Node divided_gradient(const Bucket& part) {
    const Node grad = as_value(slice(ArenaKind::gradient, part));
    return divisor_.is_empty() ? grad : grad / divisor_;
  }

  void lars(const Bucket& part, const OptimizerSpec& rule, const ParameterGroup::Options& group) {
    const Node value = slice(ArenaKind::value, part);
    const Node grad = divided_gradient(part);
    const Node length = norm(value);
    const Node trust = ratio_or_one(length * rule.trust_coefficient, norm(grad) + length * *group.decay);
    sgd(part, rule, weighted_sum(grad, 1, value, *group.decay) * trust, segments_with_rate(part, group.rate),
        is_good_.is_empty() ? Node() : goodness());
  }

  // Returns the divisor of a moment that corrects its start at zero.
  Node bias_correction(double beta) { return as_value(1 - pow(beta, update_number(DType::float64))); }

  void lamb(const Bucket& part, const OptimizerSpec& rule, const ParameterGroup::Options& group) {
    const Node value = slice(ArenaKind::value, part);
    const Node grad = divided_gradient(part);
    const Node old_mean = state(0, part);
    const Node old_square = state(1, part);
    const Node mean = weighted_sum(as_value(old_mean), rule.beta1, grad, 1 - rule.beta1);
    const Node square =
        weighted_sum(as_value(old_square), rule.beta2, plexaura::square(grad), 1 - rule.beta2);
    const Node deviation = sqrt(square / bias_correction(rule.beta2)) + rule.epsilon;
    const Node direction = mean / bias_correction(rule.beta1) / deviation + value * *group.decay;
    const Node trust = ratio_or_one(norm(value), norm(direction));
    const Node rate = group.rate == 1 ? learning_rate() : learning_rate() * group.rate;
    update_weights(part, value, or_old(value, value - direction * (rate * trust)));
    update_state(old_mean, or_old(as_value(old_mean), mean));
    update_state(old_square, or_old(as_value(old_square), square));
  }

  Graph& graph_;
  const OptimizerSpec& optimizer_;
  const Placement& placement_;
  const ArenaTypes& types_;
  DType dtype_;                     // dtype of the values, in which steps are computed
  Node divisor_;                    // divisor of the gradients; empty: they are not divided
  Node weight_ = {};                // weight of the step; empty: the loss is a mean over samples
  std::vector<Node> scaling_ = {};  // the LossScale by ScalingSlot, if there is one
  Node is_good_ = {};               // true if the step is not skipped; empty: no step is ever skipped
};

}  // namespace

std::string optimizer_name(const OptimizerSpec& optimizer) {
  const auto last = std::ranges::find_if(optimizer.groups | std::views::reverse, has_own_optimizer).base();
  std::string others;
  for (auto group = optimizer.groups.begin(); group != last; ++group)
    others += fmt::format("{}{}: {}", others.empty() ? "" : ", ", group->pattern,
                          name_of_states(rule_of(*group, optimizer)));
  const std::string averages = optimizer.ema ? " with training.ema" : "";
  if (others.empty()) return kind_name(optimizer) + averages;
  return fmt::format("{} ({}){}", name_of_states(optimizer), others, averages);
}

std::int64_t state_count(const OptimizerSpec& optimizer) {
  std::int64_t most = states_of_kind(optimizer);
  for (const ParameterGroup& group : optimizer.groups)
    most = std::max(most, states_of_kind(rule_of(group, optimizer)));
  return most + (optimizer.ema ? 1 : 0);
}

void build_update(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement,
                  std::span<const Bucket> buckets, const UpdateOptions& options) {
  check_spec(optimizer);
  UpdateBuilder builder(graph, optimizer, placement);
  const std::span<const Bucket> trainables = buckets.first(buckets.size() - 1);
  if (options.is_weighted && !trainables.empty()) builder.divide_by_weight();
  const bool scales_loss = placement.types.scales_loss() && !trainables.empty();
  if ((optimizer.max_gradient_norm > 0 && !trainables.empty()) || scales_loss)
    builder.look_at_norm(trainables);
  if (options.is_guarded) builder.guard(trainables);
  for (const Bucket& bucket : trainables) builder.step(bucket);
  builder.update_buffers(options);
  if (scales_loss) builder.adapt_loss_scale();
}

void build_buffer_update(Graph& graph, const Placement& placement, const UpdateOptions& options) {
  UpdateBuilder(graph, {}, placement).update_buffers(options);
}

void build_bucket_update(Graph& graph, const OptimizerSpec& optimizer, const Placement& placement,
                         const Bucket& bucket, const std::set<std::string>& replaced) {
  check_spec(optimizer);
  UpdateBuilder builder(graph, optimizer, placement);
  if (bucket.offset < placement.count(ParameterRole::trainable)) return builder.step(bucket);
  builder.update_buffers({.replaced = replaced});
}

}  // namespace plexaura
