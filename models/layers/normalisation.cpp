#include "models/layers/normalisation.h"

#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/layer_norm.h"
#include "core/ops/norms.h"

namespace plexaura::layers {

namespace {

std::unique_ptr<Parameter> filled(const Shape& shape, double value) {
  return std::make_unique<Parameter>(shape, Initialiser::constant(value));
}

// Throws UserError unless the last extents of x are those of the layer. Without parameters, no op compares
// them.
void check_last_extents(const Operand& x, const Shape& normalised) {
  const Shape& shape = x.node().shape();
  bool equal = shape.rank() >= normalised.rank();
  for (std::int64_t axis = 1; equal && axis <= normalised.rank(); ++axis)
    equal = shape[shape.rank() - axis] == normalised[normalised.rank() - axis];
  if (!equal)
    throw UserError(fmt::format(
        "{}: a layer norm over {} is given {}; its last extents must be those of the layer",
        to_string(x.node().graph().origin_of(x.where())), to_string(normalised), to_string(x.node().type())));
}

void check_channels(const Operand& x, std::int64_t channels) {
  const Shape& shape = x.node().shape();
  if (shape.rank() < 2 || shape[1] != channels)
    throw UserError(fmt::format("{}: a norm of {} channels is given {}; it takes [N, {}, ...]",
                                to_string(x.node().graph().origin_of(x.where())), channels,
                                to_string(x.node().type()), channels));
}

}  // namespace

LayerNorm::LayerNorm(Shape normalised, LayerNormOptions options)
    : normalised_(std::move(normalised)), epsilon_(options.epsilon) {
  if (normalised_.rank() == 0)
    throw UserError("a layer norm needs the extents of one axis or more; give the width of the last axis");
  if (options.bias && !options.weight)
    throw UserError("a layer norm without a weight has no bias; set `bias` to false, too");
  if (options.weight) weight_ = filled(normalised_, 1);
  if (options.bias) bias_ = filled(normalised_, 0);
}

void LayerNorm::members(MemberVisitor& visit) {
  visit("weight", weight_);
  visit("bias", bias_);
}

Node LayerNorm::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  Graph& graph = x.node().graph();
  if (bias_) return layer_norm(x, weight_->in(graph), bias_->in(graph), {.epsilon = epsilon_});
  check_last_extents(x, normalised_);
  const Node y = standardise(x, normalised_.rank(), {.epsilon = epsilon_});
  return weight_ ? y * weight_->in(graph) : y;
}

RmsNorm::RmsNorm(Shape normalised, RmsNormOptions options)
    : epsilon_(options.epsilon), weight_(std::move(normalised), Initialiser::ones()) {}

void RmsNorm::members(MemberVisitor& visit) { visit("weight", weight_); }

Node RmsNorm::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return rms_norm(x, weight_.in(x.node().graph()), {.epsilon = epsilon_});
}

GroupNorm::GroupNorm(std::int64_t groups, std::int64_t channels, GroupNormOptions options)
    : groups_(groups), channels_(channels), epsilon_(options.epsilon) {
  if (groups < 1 || channels % groups != 0)
    throw UserError(fmt::format(
        "a group norm of {} channels cannot have {} groups; the groups must divide the channels evenly",
        channels, groups));
  if (!options.affine) return;
  weight_ = filled({channels}, 1);
  bias_ = filled({channels}, 0);
}

void GroupNorm::members(MemberVisitor& visit) {
  visit("weight", weight_);
  visit("bias", bias_);
}

Node GroupNorm::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  check_channels(x, channels_);
  Graph& graph = x.node().graph();
  const plexaura::GroupNormOptions options{.epsilon = epsilon_};
  if (!weight_) return group_norm(x, groups_, options);
  return group_norm(x, groups_, weight_->in(graph), bias_->in(graph), options);
}

InstanceNorm::InstanceNorm(std::int64_t channels, InstanceNormOptions options)
    : channels_(channels), epsilon_(options.epsilon) {
  if (!options.affine) return;
  weight_ = filled({channels}, 1);
  bias_ = filled({channels}, 0);
}

void InstanceNorm::members(MemberVisitor& visit) {
  visit("weight", weight_);
  visit("bias", bias_);
}

Node InstanceNorm::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  check_channels(x, channels_);
  Graph& graph = x.node().graph();
  const plexaura::GroupNormOptions options{.epsilon = epsilon_};
  if (!weight_) return instance_norm(x, options);
  return instance_norm(x, weight_->in(graph), bias_->in(graph), options);
}

}  // namespace plexaura::layers
