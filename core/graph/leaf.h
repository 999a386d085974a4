#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

enum class LeafKind : std::uint8_t { input, parameter, buffer, constant, step_scalar, arena_slice };

// The numbers that change from step to step. They are copied to the device in one block before each run, and
// kernels read them there, so that a recorded program stays right when they change.
enum class StepScalar : std::uint8_t {
  gradient_seed,  // share x loss scale: the cotangent of the loss
  share,          // samples of this micro-batch / samples of the whole step over ranks and micro-batches
  samples,        // samples of this micro-batch
  learning_rate,
  step,        // number of this update, from 1
  stop,        // 1 when this rank was asked to stop
  failed,      // 1 when this rank's own work failed
  loss_scale,  // that of gradient_seed, for the update to divide out
  random,      // int64[3]: seed, step, position of the first sample in the step's global batch
};

enum class ArenaKind : std::uint8_t { value, gradient, state, shadow, addend, scaling };

// `count` physical elements from `offset` on of an arena of the parameter store; `state` numbers the optimizer's
// arenas. Addends lie as gradients do; scaling holds a LossScale.
struct ArenaSlice {
  ArenaKind arena = ArenaKind::value;
  std::int64_t state = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool operator==(const ArenaSlice&) const = default;
};

// A node without inputs: what a program is given. `label` is the name of an input, parameter or buffer.
class PLEXAURA_API Leaf final : public Op {
 public:
  Leaf(LeafKind kind, std::string label, TensorType type)
      : kind_(kind), label_(std::move(label)), type_(std::move(type)) {}
  explicit Leaf(std::shared_ptr<const Tensor> value);
  Leaf(StepScalar scalar, DType dtype);
  Leaf(ArenaSlice slice, DType dtype);

  LeafKind kind() const { return kind_; }
  const std::string& label() const { return label_; }
  const TensorType& type() const { return type_; }
  const std::shared_ptr<const Tensor>& value() const { return value_; }  // of a constant
  StepScalar scalar() const { return scalar_; }
  const ArenaSlice& slice() const { return slice_; }

  std::string_view name() const override;
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest&) const override { return {}; }
  Description description() const override;

 private:
  LeafKind kind_;
  std::string label_;
  TensorType type_;
  std::shared_ptr<const Tensor> value_;
  StepScalar scalar_ = StepScalar::gradient_seed;
  ArenaSlice slice_;
};

// The op as a leaf, or null.
PLEXAURA_API const Leaf* as_leaf(const Op& op);
PLEXAURA_API std::string_view name_of(StepScalar scalar);

}  // namespace plexaura
