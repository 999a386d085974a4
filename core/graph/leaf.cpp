#include "core/graph/leaf.h"

#include <array>

namespace plexaura {

Leaf::Leaf(std::shared_ptr<const Tensor> value)
    : kind_(LeafKind::constant), type_(value->type()), value_(std::move(value)) {}

Leaf::Leaf(StepScalar scalar, DType dtype)
    : kind_(LeafKind::step_scalar),
      label_(name_of(scalar)),
      type_{dtype, scalar == StepScalar::random ? Shape{3} : Shape{}},
      scalar_(scalar) {}

Leaf::Leaf(ArenaSlice slice, DType dtype)
    : kind_(LeafKind::arena_slice), type_{dtype, Shape{slice.count}}, slice_(slice) {}

Leaf::Leaf(std::size_t operand, TensorType type)
    : kind_(LeafKind::operand), type_(std::move(type)), operand_(operand) {}

std::string_view Leaf::name() const {
  static constexpr std::array<std::string_view, 7> names{"input",       "parameter",   "buffer", "constant",
                                                         "step_scalar", "arena_slice", "operand"};
  return names.at(static_cast<std::size_t>(kind_));
}

std::vector<TensorType> Leaf::infer(std::span<const TensorType>) const { return {type_}; }

Description Leaf::description() const {
  Description description;
  FieldWriter write(description);
  switch (kind_) {
    case LeafKind::constant:
      write("value", value_);
      break;
    case LeafKind::arena_slice: {
      static constexpr std::array<const char*, 6> arenas{"value",  "gradient", "state",
                                                         "shadow", "addend",   "scaling"};
      write("arena", std::string(arenas.at(static_cast<std::size_t>(slice_.arena))));
      write("state", slice_.state);
      write("offset", slice_.offset);
      write("count", slice_.count);
      break;
    }
    case LeafKind::operand:
      write("number", static_cast<std::int64_t>(operand_));
      write("dtype", type_.dtype);
      write("shape", type_.shape);
      break;
    default:
      write("name", label_);
      write("dtype", type_.dtype);
      write("shape", type_.shape);
  }
  return description;
}

const Leaf* as_leaf(const Op& op) { return dynamic_cast<const Leaf*>(&op); }

std::string_view name_of(StepScalar scalar) {
  static constexpr std::array<std::string_view, 9> names{
      "gradient_seed", "share", "samples", "learning_rate", "step", "stop", "failed", "loss_scale", "random"};
  return names.at(static_cast<std::size_t>(scalar));
}

}  // namespace plexaura
