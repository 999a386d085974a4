#pragma once

#include <optional>

#include "models/layers/layer.h"

namespace plexaura::layers {

struct LayerNormOptions {
  double epsilon = 1e-5;
  bool weight = true;  // true: a weight scales each element
  bool bias = true;    // true: a bias shifts each element, after the scaling
};

// Layer normalisation over the last axes, the op layer_norm: x [..., normalised...] -> the same shape.
// Parameters: weight and bias, both of the shape `normalised`; they start as ones and zeros.
class LayerNorm final : public Layer {
 public:
  // Throws UserError for a bias without a weight, and for a shape without axes.
  explicit LayerNorm(Shape normalised, LayerNormOptions options = {});
  explicit LayerNorm(WrittenInteger auto width, LayerNormOptions options = {})
      : LayerNorm(Shape{static_cast<std::int64_t>(width)}, options) {}

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t, std::int64_t) const override {
    return normalised_.rank() == 1 ? incremental_by_position(*this) : nullptr;
  }

 private:
  Shape normalised_;
  double epsilon_;
  std::unique_ptr<Parameter> weight_;
  std::unique_ptr<Parameter> bias_;
};

struct RmsNormOptions {
  std::optional<double> epsilon = {};  // added to the mean square; empty: the default of the op rms_norm
};

// Division by the root of the mean square over the last axes, the op rms_norm: x [..., normalised...] -> the same shape.
// Parameters: weight of the shape `normalised`, which starts as ones.
class RmsNorm final : public Layer {
 public:
  explicit RmsNorm(Shape normalised, RmsNormOptions options = {});
  explicit RmsNorm(WrittenInteger auto width, RmsNormOptions options = {})
      : RmsNorm(Shape{static_cast<std::int64_t>(width)}, options) {}

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t, std::int64_t) const override {
    return weight_.shape().rank() == 1 ? incremental_by_position(*this) : nullptr;
  }

 private:
  std::optional<double> epsilon_;
  Parameter weight_;
};

struct GroupNormOptions {
  double epsilon = 1e-5;
  bool affine = true;  // true: weight and bias scale and shift each channel
};

// Normalisation of groups of channels in each sample, the op group_norm: x [N, channels, ...] -> the same shape.
// Parameters, if `affine`: weight and bias [channels], which start as ones and zeros.
class GroupNorm final : public Layer {
 public:
  // Throws UserError if `groups` does not divide `channels`.
  GroupNorm(std::int64_t groups, std::int64_t channels, GroupNormOptions options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;

 private:
  std::int64_t groups_;
  std::int64_t channels_;
  double epsilon_;
  std::unique_ptr<Parameter> weight_;
  std::unique_ptr<Parameter> bias_;
};

struct InstanceNormOptions {
  double epsilon = 1e-5;
  bool affine = false;  // true: weight and bias scale and shift each channel
};

// Normalisation of each channel in each sample, the op instance_norm: x [N, channels, ...], with three axes or more, ->
// the same shape. It has no running statistics.
// Parameters, if `affine`: weight and bias [channels], which start as ones and zeros.
class InstanceNorm final : public Layer {
 public:
  explicit InstanceNorm(std::int64_t channels, InstanceNormOptions options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;

 private:
  std::int64_t channels_;
  double epsilon_;
  std::unique_ptr<Parameter> weight_;
  std::unique_ptr<Parameter> bias_;
};

// The names that PyTorch has for this layer.
using InstanceNorm1d = InstanceNorm;
using InstanceNorm2d = InstanceNorm;
using InstanceNorm3d = InstanceNorm;

}  // namespace plexaura::layers
