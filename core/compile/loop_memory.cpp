#include "core/compile/loop_memory.h"

#include "core/compile/memory_plan.h"

namespace plexaura {

namespace {
constexpr std::int64_t most_steps_bound = 4096;
}

LoopMemory::LoopMemory(const LoopWork& loop) {
  take(loop.body->arena_bytes);
  prologue_ = take(loop.body->prologue_bytes);
  for (std::size_t carry = 0; carry < loop.carries; ++carry)
    for (int place = 0; place < 2; ++place) carries_.push_back(take(loop.inputs[carry].bytes));
  input_copies_ = copies_of(loop.inputs, loop.steps);
  output_copies_ = copies_of(loop.outputs, loop.steps);
}

std::size_t LoopMemory::take(std::size_t bytes) {
  const std::size_t offset = bytes_;
  bytes_ = whole_granules(bytes_ + bytes);
  return offset;
}

std::vector<LoopMemory::Copy> LoopMemory::copies_of(const std::vector<LoopOperand>& operands,
                                                    std::int64_t steps) {
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const LoopOperand& operand = operands[i];
    const bool is_aligned = operand.bytes % granule == 0;
    if (operand.is_stacked && operand.is_used && (!is_aligned || steps > most_steps_bound))
      copies.push_back({i, take(operand.bytes)});
  }
  return copies;
}

}  // namespace plexaura
