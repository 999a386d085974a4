#pragma once

#include <vector>

#include "core/export.h"
#include "core/graph/op.h"

namespace plexaura {

// The op classes behind shape.h, for kernels that read their options.

class PLEXAURA_API Reshape final : public Op {
 public:
  explicit Reshape(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {}
  std::string_view name() const override { return "reshape"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void describe(Description& description) const override { description.add("shape", extents_); }
  OpTraits traits() const override { return {.view = true}; }

 private:
  std::vector<std::int64_t> extents_;
};

class PLEXAURA_API BroadcastTo final : public Op {
 public:
  explicit BroadcastTo(Shape shape) : shape_(std::move(shape)) {}
  std::string_view name() const override { return "broadcast_to"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void describe(Description& description) const override { description.add("shape", shape_); }

 private:
  Shape shape_;
};

class PLEXAURA_API Permute final : public Op {
 public:
  explicit Permute(std::vector<std::int64_t> axes) : axes_(std::move(axes)) {}
  std::string_view name() const override { return "permute"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void describe(Description& description) const override { description.add("axes", axes_); }
  const std::vector<std::int64_t>& axes() const { return axes_; }

 private:
  std::vector<std::int64_t> axes_;
};

}  // namespace plexaura
