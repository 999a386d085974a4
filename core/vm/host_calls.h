#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/profile.h"
#include "core/compile/program.h"
#include "core/exchange/collective.h"
#include "core/vm/program_memory.h"

namespace plexaura {

// The instructions of a program that the host carries out: sums over ranks, and ops for which the backend has no kernel. Each
// of them copies its operands to staging memory, computes there, and copies its results back.
class HostCalls {
 public:
  // Called after each host call. `start` is when the call began, in microseconds of the profile. The copy of its results
  // to the device may still be under way.
  using Observer = std::function<void(const Instruction& instruction, double start)>;

  // The program, the backend, the collective, the memory and the profile must outlive this object. Throws UserError if the
  // program sums over ranks and `collective` is null.
  HostCalls(const Program& program, Backend& backend, Collective* collective, ProgramMemory& memory,
            Profile* profile, Observer observer);

  // Carries out the instruction with this index.
  void run(std::size_t index);

 private:
  struct StagedSlot {
    const Slot* slot;
    std::size_t offset;  // offset in the staging memory
    std::size_t bytes() const { return static_cast<std::size_t>(slot->layout.bytes(slot->type)); }
  };
  struct Call {
    std::size_t index;  // index of the instruction
    std::vector<StagedSlot> inputs = {};
    std::vector<StagedSlot> outputs = {};
    std::size_t workspace = 0;  // offset of the kernel's workspace in the staging memory; only for an op
    std::string name = {};      // the name of a sum over ranks, equal on all ranks; empty for an op
    std::unique_ptr<Launch> launch = {};  // the kernel of an op; null for a sum over ranks
  };

  const Instruction& instruction_of(const Call& call) const { return program_.instructions[call.index]; }
  // Sets the offsets of the operands in the staging memory. Returns the bytes that the call needs there.
  std::size_t lay_out(Call& call) const;
  std::size_t lay_out_op(Call& call, std::size_t workspace) const;
  void bind(Call& call, const Kernel& kernel) const;
  void sum(const Call& call);
  void run_op(const Call& call);

  const Program& program_;
  Backend& backend_;
  Collective* collective_;
  ProgramMemory& memory_;
  Profile* profile_;
  Observer observer_;
  std::vector<Call> calls_;
  // The staging memory of all calls, which run one after the other; null if there are no calls.
  std::unique_ptr<Memory> staging_;
  std::unique_ptr<Event> copied_;
};

}  // namespace plexaura
