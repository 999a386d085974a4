#pragma once

#include <memory>

#include "core/compile/program.h"
#include "core/params/parameter_store.h"
#include "core/vm/program_feeds.h"
#include "core/vm/prologue_memory.h"
#include "core/vm/workspace.h"

namespace plexaura {

// All memory that a VM's program reads and writes: workspace, constants, prologue, feeds, and the arenas of the store.
// Translates places to addresses.
class ProgramMemory {
 public:
  // The program, the backend and the store must outlive this object. `store` may be null if the program reads no
  // parameters. Makes a workspace if `workspace` is null. Throws UserError if store, workspace or prologue do not fit the
  // program.
  ProgramMemory(const Program& program, Backend& backend, ParameterStore* store,
                std::shared_ptr<Workspace> workspace, std::shared_ptr<PrologueMemory> prologue);

  // Called before the first address in the prologue is needed, so that a program that never runs allocates no memory for
  // it.
  void allocate_prologue();
  PrologueMemory& prologue() { return *prologue_; }
  // Returns the address of a place. A feed is in the current slot.
  Address address(const Place& place) const;
  ProgramFeeds& feeds() { return feeds_; }
  const ProgramFeeds& feeds() const { return feeds_; }

 private:
  Backend& backend_;
  ParameterStore* store_;
  std::shared_ptr<Workspace> workspace_;
  std::unique_ptr<Memory> constants_;
  std::shared_ptr<PrologueMemory> prologue_;
  Address prologue_address_ = nullptr;  // address of the prologue's memory; null until it is needed
  ProgramFeeds feeds_;
};

}  // namespace plexaura
