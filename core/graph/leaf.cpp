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

std::string_view Leaf::name() const {
  static constexpr std::array<std::string_view, 6> names{"input",    "parameter",   "buffer",
                                                         "constant", "step_scalar", "arena_slice"};
  return names.at(static_cast<std::size_t>(kind_));
}

std::vector<TensorType> Leaf::infer(std::span<const TensorType>) const { return {type_}; }

void Leaf::describe(Description& description) const {
  switch (kind_) {
    case LeafKind::constant:
      description.add("value", value_);
      break;
    case LeafKind::arena_slice: {
      static constexpr std::array<const char*, 6> arenas{"value",  "gradient", "state",
                                                         "shadow", "addend",   "scaling"};
      description.add("arena", std::string(arenas.at(static_cast<std::size_t>(slice_.arena))));
      description.add("state", slice_.state).add("offset", slice_.offset).add("count", slice_.count);
      break;
    }
    default:
      description.add("name", label_).add("dtype", type_.dtype).add("shape", type_.shape);
  }
}

const Leaf* as_leaf(const Op& op) { return dynamic_cast<const Leaf*>(&op); }

std::string_view name_of(StepScalar scalar) {
  static constexpr std::array<std::string_view, 9> names{
      "gradient_seed", "share", "samples", "learning_rate", "step", "stop", "failed", "loss_scale", "random"};
  return names.at(static_cast<std::size_t>(scalar));
}

}  // namespace plexaura
