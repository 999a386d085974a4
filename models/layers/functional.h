#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/interpolate.h"
#include "models/layers/layer.h"

namespace plexaura::layers {

// Layers without parameters, each of which calls one builder function.

// An elementwise function by name: relu, sigmoid, tanh, gelu, silu, elu or leaky_relu, with the defaults of these ops.
// Accepts any shape.
class Activation final : public Layer {
 public:
  explicit Activation(std::string_view name);  // throws UserError, with a suggestion, for an unknown name
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t, std::int64_t) const override {
    return incremental_by_position(*this);
  }

  static const std::vector<std::string>& names();

 private:
  Node (*apply_)(Operand x);
};

// Returns its input.
class Identity final : public Layer {
 public:
  Node operator()(Operand x) const override { return x.node(); }
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t, std::int64_t) const override {
    return incremental_by_position(*this);
  }
};

// Joins the axes from `first` to `last` to one axis. Negative numbers count from the end. By default [N, ...] -> [N,
// product of the rest].
class Flatten final : public Layer {
 public:
  explicit Flatten(std::int64_t first = 1, std::int64_t last = -1) : first_(first), last_(last) {}
  // Throws UserError if x has no such axes, or if `last` is before `first`.
  Node operator()(Operand x) const override;

 private:
  std::int64_t first_;
  std::int64_t last_;
};

// Gives samples another shape: [N, ...] -> [N, extents...].
class ReshapeSamples final : public Layer {
 public:
  explicit ReshapeSamples(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {}
  Node operator()(Operand x) const override;

 private:
  std::vector<std::int64_t> extents_;
};

// Makes sequences of the pixels of images: [N, C, ...] -> [N, product of the rest, C].
class Tokens final : public Layer {
 public:
  Node operator()(Operand x) const override;
};

// Returns the last step of sequences: [N, T, ...] -> [N, ...].
class LastStep final : public Layer {
 public:
  Node operator()(Operand x) const override;
};

// Returns the mean over the steps of sequences: [N, T, ...] -> [N, ...].
class MeanOfSteps final : public Layer {
 public:
  Node operator()(Operand x) const override;
};

// Changes the extents of images (the op interpolate): [N, C, ...] -> [N, C, ...].
class Upsample final : public Layer {
 public:
  explicit Upsample(InterpolateOptions options) : options_(std::move(options)) {}
  // Multiplies each extent after N and C by `scale`, with the nearest pixel.
  explicit Upsample(WrittenInteger auto scale) : options_{.scale = {static_cast<double>(scale)}} {}
  Node operator()(Operand x) const override;

 private:
  InterpolateOptions options_;
};

// In a graph of Mode::train, sets elements to 0 with probability p and divides the others by 1 - p. In other
// graphs returns x itself.
class Dropout final : public Layer {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t, std::int64_t) const override {
    return incremental_by_position(*this);
  }

 private:
  double p_;
};

// Scales each sample to mean 0 and variance 1 over its last axis: (x - mean) / sqrt(variance + 1e-5).
class Standardise final : public Layer {
 public:
  Node operator()(Operand x) const override;
  std::unique_ptr<IncrementalLayer> incremental(std::int64_t, std::int64_t) const override {
    return incremental_by_position(*this);
  }
};

}  // namespace plexaura::layers
