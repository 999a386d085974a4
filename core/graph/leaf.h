#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

enum class LeafKind : std::uint8_t {
  input,
  parameter,
  buffer,
  constant,
  step_scalar,
  arena_slice,
  operand  // an operand of the op that holds the graph: see Subgraph
};

// The numbers that change from step to step. They are copied to the device in one block before each run.
// Kernels read them there, so that a recorded program uses their new values.
enum class StepScalar : std::uint8_t {
  gradient_seed,  // share x loss scale; from it backward's first gradient is computed, that of the loss
  // Share of this micro-batch in the samples of the whole step (all ranks and micro-batches), from 0 to 1.
  share,
  samples,  // samples of this micro-batch
  learning_rate,
  step,        // number of this update, from 1
  stop,        // 1 if this rank was asked to stop
  failed,      // 1 if this rank's own work failed
  loss_scale,  // the factor of the loss that gradient_seed contains; the update divides the gradients by it
  random,      // int64[3]: seed, step, position of the first sample in the step's global batch
};

enum class ArenaKind : std::uint8_t { value, gradient, state, shadow, addend, scaling };

// A slice of an arena of the parameter store: `count` physical elements from `offset` on. `state` is the
// index of the optimizer's state arena. The arena of addends has the same order as that of gradients. The
// arena `scaling` holds a LossScale.
struct ArenaSlice {
  ArenaKind arena = ArenaKind::value;
  std::int64_t state = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool operator==(const ArenaSlice&) const = default;
};

// A node without inputs: a value that a program gets from outside, or a constant. `label` is the name of an
// input, parameter, buffer or step scalar.
class PLEXAURA_API Leaf final : public Op {
 public:
  Leaf(LeafKind kind, std::string label, TensorType type)
      : kind_(kind), label_(std::move(label)), type_(std::move(type)) {}
  explicit Leaf(std::shared_ptr<const Tensor> value);
  Leaf(StepScalar scalar, DType dtype);
  Leaf(ArenaSlice slice, DType dtype);
  Leaf(std::size_t operand, TensorType type);

  LeafKind kind() const { return kind_; }
  const std::string& label() const { return label_; }
  const TensorType& type() const { return type_; }
  // The elements of a constant; null for other leaves.
  const std::shared_ptr<const Tensor>& value() const { return value_; }
  StepScalar scalar() const { return scalar_; }
  const ArenaSlice& slice() const { return slice_; }
  std::size_t operand() const { return operand_; }  // the operand's number; only for a leaf of kind `operand`

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
  std::size_t operand_ = 0;
};

// Returns the op as a Leaf, or null if it is no leaf.
PLEXAURA_API const Leaf* as_leaf(const Op& op);
PLEXAURA_API std::string_view name_of(StepScalar scalar);

}  // namespace plexaura
