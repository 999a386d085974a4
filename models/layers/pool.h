#pragma once

#include "core/ops/pool2d.h"
#include "models/layers/layer.h"

namespace plexaura::layers {

// Returns the largest element of each window (the op max_pool2d): [N, C, H, W] -> [N, C, OH, OW].
class MaxPool2d final : public Layer {
 public:
  explicit MaxPool2d(MaxPool2dOptions options) : options_(options) {}
  explicit MaxPool2d(WrittenInteger auto kernel) : options_{.kernel = kernel} {}
  Node operator()(Operand x) const override;

 private:
  MaxPool2dOptions options_;
};

// Returns the mean of each window (the op avg_pool2d): [N, C, H, W] -> [N, C, OH, OW].
class AvgPool2d final : public Layer {
 public:
  explicit AvgPool2d(AvgPool2dOptions options) : options_(options) {}
  explicit AvgPool2d(WrittenInteger auto kernel) : options_{.kernel = kernel} {}
  Node operator()(Operand x) const override;

 private:
  AvgPool2dOptions options_;
};

// Returns the mean over height and width: [N, C, H, W] -> [N, C].
class GlobalAvgPool final : public Layer {
 public:
  Node operator()(Operand x) const override;
};

}  // namespace plexaura::layers
