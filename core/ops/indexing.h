#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Reading and writing elements whose places along one axis are given by indices. x may have any dtype. Indices are
// int64. Those of an axis of extent N are from 0 to N - 1. Any other index ends the run with an error, as in gather().
// gather.h has gather(), which takes whole rows. A negative axis counts from the end.

// The elements of x at the indices of an axis: result[i, j, k] = x[i, indices[i, j, k], k] for axis 1 of 3. x and indices
// have the same number of axes, and all axes but this one broadcast. numpy's take_along_axis, PyTorch's gather.
PLEXAURA_API Node take_along_axis(Operand x, Operand indices, std::int64_t axis);

// The rows of x at these indices [M] of an axis: x [A..., N, B...] -> [A..., M, B...]. It is gather() for indices
// with one axis.
PLEXAURA_API Node index_select(Operand x, std::int64_t axis, Operand indices);

// x with other elements at the indices of an axis: result[i, indices[i, j, k], k] = updates[i, j, k] for axis 1 of
// 3. `updates` is a number or a value of x's dtype. Indices and updates broadcast to each other and, along all other
// axes, to the extents of x. If an index occurs more than once in a line, the last update counts, and only that one
// gets a gradient.
PLEXAURA_API Node scatter(Operand x, Operand indices, Operand updates, std::int64_t axis);

// Does the same as scatter(), but each update is added to the element of x, repeated indices included.
// Numbers of any dtype but bool. 16-bit floats are added up in float32. A sum of integers that the dtype
// cannot hold wraps around.
PLEXAURA_API Node scatter_add(Operand x, Operand indices, Operand updates, std::int64_t axis);

// x with `value`, a number or a value that broadcasts, where the mask (bool, broadcasts to x) is true.
PLEXAURA_API Node masked_fill(Operand x, Operand mask, Operand value);

struct AlongAxisOptions {
  std::int64_t axis = 0;  // counted from the front
  static void fields(auto& self, auto& visitor) { visitor("axis", self.axis); }
};

// Inputs: x, indices.
class PLEXAURA_API TakeAlongAxis final : public OpOf<TakeAlongAxis, AlongAxisOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "take_along_axis"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

struct TakeAlongAxisGradOptions : AlongAxisOptions {
  std::int64_t extent = 0;  // extent of the result along the axis
  static void fields(auto& self, auto& visitor) {
    AlongAxisOptions::fields(self, visitor);
    visitor("extent", self.extent);
  }
};

// The sums of the updates at each index, 0 where there are none. Inputs: updates and indices of one shape.
class PLEXAURA_API TakeAlongAxisGrad final : public OpOf<TakeAlongAxisGrad, TakeAlongAxisGradOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "take_along_axis_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
};

// Inputs: x, and indices and updates of one shape.
class PLEXAURA_API Scatter final : public OpOf<Scatter, AlongAxisOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "scatter"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

}  // namespace plexaura
