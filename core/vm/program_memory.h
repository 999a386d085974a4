#pragma once

#include <memory>

#include "core/compile/program.h"
#include "core/params/parameter_store.h"
#include "core/vm/program_feeds.h"
#include "core/vm/workspace.h"

namespace plexaura {

// All that a program of one VM reads and writes: its workspace, constants, prologue and feeds, and the arenas of
// the store. Gives places their addresses.
class ProgramMemory {
 public:
  // The program, the backend and the store outlive this. `store` may be null where the program reads no
  // parameters, `workspace` where it is to have one of its own. UserError where one does not fit the program.
  ProgramMemory(const Program& program, Backend& backend, ParameterStore* store,
                std::shared_ptr<Workspace> workspace);

  // Comes before an address in the prologue is asked for: a program that never runs needs none.
  void allocate_prologue();
  // In the current slot where the place is that of a feed.
  Address address(const Place& place) const;
  ProgramFeeds& feeds() { return feeds_; }
  const ProgramFeeds& feeds() const { return feeds_; }

 private:
  const Program& program_;
  Backend& backend_;
  ParameterStore* store_;
  std::shared_ptr<Workspace> workspace_;
  std::unique_ptr<Memory> constants_;
  std::unique_ptr<Memory> prologue_;  // null until it is needed
  ProgramFeeds feeds_;
};

}  // namespace plexaura
