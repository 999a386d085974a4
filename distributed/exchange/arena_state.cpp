#include "distributed/exchange/arena_state.h"

#include <fmt/format.h>

#include "core/tensor/layout.h"
#include "distributed/node/reduce.h"

namespace plexaura {
namespace {

bool holds(const Tensor& memory, const Placement::Entry& entry) {
  return entry.offset + entry.count <= memory.elements();
}

TensorType type_in(const Tensor& memory, const Placement::Entry& entry) {
  return {memory.dtype(), entry.type.shape};
}

}  // namespace

void keep_arena(const Placement& placement, const Tensor& memory, std::string_view prefix, bool of_rank,
                std::vector<StrategyState>& state) {
  for (const Placement::Entry& entry : placement.entries) {
    if (!holds(memory, entry)) continue;
    Tensor value(type_in(memory, entry));
    reorder(memory.data() + bytes_of(memory.dtype(), entry.offset), entry.layout, value.data(),
            Layout::row_major(entry.type.shape.rank()), value.type());
    state.push_back({fmt::format("{}{}", prefix, entry.name), std::move(value), of_rank});
  }
}

void take_arena(const Placement& placement, Tensor& memory, std::string_view prefix,
                const StrategyState& part) {
  if (!part.name.starts_with(prefix)) return;
  const Placement::Entry* entry = placement.find(part.name.substr(prefix.size()));
  if (entry == nullptr || !holds(memory, *entry) || part.value.type() != type_in(memory, *entry)) return;
  reorder(part.value.data(), Layout::row_major(entry->type.shape.rank()),
          memory.data() + bytes_of(memory.dtype(), entry->offset), entry->layout, part.value.type());
}

}  // namespace plexaura
