#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct GatherOptions {
  std::int64_t axis = 0;  // axis of x; negative numbers count from the end
  static void fields(auto& self, auto& visitor) { visitor("axis", self.axis); }
};

// The elements of x at indices of one axis, as numpy's take: x [A..., N, B...] and indices int64 [I...] ->
// [A..., I..., B...]. Any dtype. Indices are from 0 to N - 1. Any other index ends the run with a UserError
// that names it (on a device with its own stream, with a DeviceError at the next wait for the stream).
PLEXAURA_API Node gather(Operand x, Operand indices, GatherOptions options = {});

// The gradient of gather() by x: grad_out [A..., I..., B...] -> [A..., extent, B...]. Elements with the same
// index are added in the order of the indices, in the dtype of grad_out, so the result is the same in every
// run. Floating.
PLEXAURA_API Node gather_grad(Operand grad_out, Operand indices, std::int64_t extent,
                              GatherOptions options = {});

// The row of weights [V, D] for each index, int64 [...] from 0 to V - 1 -> [..., D]. It is a gather along
// axis 0. The row `padding`, if given, gets no gradient; a negative one counts from the end.
PLEXAURA_API Node embedding(Operand weights, Operand indices, std::optional<std::int64_t> padding = {});

// Inputs: x, indices.
class PLEXAURA_API Gather final : public OpOf<Gather, GatherOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "gather"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

struct GatherGradOptions {
  std::int64_t axis = 0;  // axis of the result, counted from the front
  std::int64_t extent = 0;
  static void fields(auto& self, auto& visitor) {
    visitor("axis", self.axis);
    visitor("extent", self.extent);
  }
};

// Inputs: grad_out, indices.
class PLEXAURA_API GatherGrad final : public OpOf<GatherGrad, GatherGradOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "gather_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

}  // namespace plexaura
