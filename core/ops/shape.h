#pragma once

#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Ops that move elements or change shapes, and compute nothing. Any dtype.

// The same elements, in row-major order, with another shape. One extent may be -1; it is computed from the
// others. Makes no copy if the layout allows that.
PLEXAURA_API Node reshape(Operand x, std::vector<std::int64_t> extents);

// [N, ...] -> [N, product of the other extents].
PLEXAURA_API Node flatten(Operand x);

// Repeats elements along axes of extent 1 and adds axes at the front: numpy's broadcasting, as a value.
PLEXAURA_API Node broadcast_to(Operand x, Shape shape);

// Axis i of the result is axis axes[i] of x. `axes` lists each axis once; negative ones count from the end.
PLEXAURA_API Node permute(Operand x, std::vector<std::int64_t> axes);

struct ReshapeOptions {
  std::vector<std::int64_t> extents = {};  // extents of the result; one may be -1
  static void fields(auto& self, auto& visitor) { visitor("shape", self.extents); }
};

class PLEXAURA_API Reshape final : public OpOf<Reshape, ReshapeOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "reshape"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.view = true, .precision = Precision::follows}; }
};

struct BroadcastToOptions {
  Shape shape = {};
  static void fields(auto& self, auto& visitor) { visitor("shape", self.shape); }
};

class PLEXAURA_API BroadcastTo final : public OpOf<BroadcastTo, BroadcastToOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "broadcast_to"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

struct PermuteOptions {
  std::vector<std::int64_t> axes = {};  // counted from the front
  static void fields(auto& self, auto& visitor) { visitor("axes", self.axes); }
};

class PLEXAURA_API Permute final : public OpOf<Permute, PermuteOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "permute"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

}  // namespace plexaura
