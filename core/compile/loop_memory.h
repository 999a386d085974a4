#pragma once

#include <cstddef>
#include <vector>

#include "core/base/export.h"
#include "core/compile/program.h"

namespace plexaura {

// The division of a loop's workspace: the arena and the prologue of its body, two places for each carry, and
// one place for each stacked operand of which every step uses a copy.
class PLEXAURA_API LoopMemory {
 public:
  // A copy of the part of a stacked operand that one step uses.
  struct Copy {
    std::size_t operand;
    std::size_t offset;  // offset in the workspace
  };

  explicit LoopMemory(const LoopWork& loop);

  std::size_t bytes() const { return bytes_; }
  std::size_t arena() const { return 0; }
  std::size_t prologue() const { return prologue_; }
  // Steps take turns between the two places of a carry: each writes the one that it does not read.
  std::size_t carry(std::size_t carry, bool second) const { return carries_[2 * carry + (second ? 1 : 0)]; }
  // Each step uses a copy of its part of a stacked operand in two cases. The part may begin at an address
  // that is not aligned for kernels. Or the loop is long: then copies save binding the instructions to new
  // addresses for each step.
  const std::vector<Copy>& input_copies() const { return input_copies_; }
  const std::vector<Copy>& output_copies() const { return output_copies_; }

 private:
  std::size_t take(std::size_t bytes);
  std::vector<Copy> copies_of(const std::vector<LoopOperand>& operands, std::int64_t steps);

  std::size_t bytes_ = 0;
  std::size_t prologue_ = 0;
  std::vector<std::size_t> carries_;
  std::vector<Copy> input_copies_;
  std::vector<Copy> output_copies_;
};

}  // namespace plexaura
