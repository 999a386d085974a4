#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/profile.h"
#include "core/compile/program.h"
#include "core/device/transfer.h"
#include "core/exchange/collective.h"
#include "core/vm/program_memory.h"
#include "core/vm/segments.h"

namespace plexaura {

// The instructions of a program that sum a value over ranks, which the host does.
class CollectiveCalls {
 public:
  // All outlive this. UserError where the program has collectives and `collective` is null.
  CollectiveCalls(const Program& program, Backend& backend, Collective* collective, ProgramMemory& memory,
                  Profile* profile);

  // One for each of them, behind its instruction.
  std::vector<HostPoint> host_points();

 private:
  struct Call {
    std::size_t instruction;
    std::string what;  // what all ranks know it by
  };

  void run(const Call& call);

  const Program& program_;
  Collective* collective_;
  ProgramMemory& memory_;
  Profile* profile_;
  std::vector<Call> calls_;
  std::optional<StagedCopy> staging_;
};

}  // namespace plexaura
