#include "core/vm/program_memory.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/device/transfer.h"

namespace plexaura {

namespace {

void require_store(const Program& program, const Backend& backend, const ParameterStore* store) {
  if (store == nullptr && !program.placement.entries.empty())
    throw UserError("VM: the program reads parameters; give it the store that holds them");
  if (store != nullptr && store->placed() && &store->backend() != &backend)
    throw UserError("VM: the store was placed on another backend; make a store for each backend");
  if (!program.placement.entries.empty() && store->placement().types != program.placement.types)
    throw UserError(
        fmt::format("VM: the program has arenas of {} and the store of {}; compile it with store.placement()",
                    to_text(program.placement.types), to_text(store->placement().types)));
  for (const Placement::Entry& entry : program.placement.entries) {
    const Placement::Entry* placed = store->placement().find(entry.name);
    if (placed == nullptr || *placed != entry)
      throw UserError(fmt::format(
          "VM: the program has '{}' at another place than the store; compile it with store.placement()",
          entry.name));
  }
}

std::shared_ptr<Workspace> require_workspace(const Program& program, Backend& backend,
                                             std::shared_ptr<Workspace> given) {
  if (!given) return std::make_shared<Workspace>(backend, program.arena_bytes, program.feed_bytes);
  if (given->bytes() < program.arena_bytes)
    throw UserError(
        fmt::format("VM: the shared workspace has {} bytes and the program needs {}; make it as large as "
                    "the largest program's",
                    given->bytes(), program.arena_bytes));
  return given;
}

std::shared_ptr<PrologueMemory> require_prologue(const Program& program,
                                                 std::shared_ptr<PrologueMemory> given) {
  if (given->program().get() != &program)
    throw UserError("VM: the prologue memory is that of another program; make one for each program");
  return given;
}

}  // namespace

ProgramMemory::ProgramMemory(const Program& program, Backend& backend, ParameterStore* store,
                             std::shared_ptr<Workspace> workspace, std::shared_ptr<PrologueMemory> prologue)
    : backend_(backend),
      store_((require_store(program, backend, store), store)),
      workspace_(require_workspace(program, backend, std::move(workspace))),
      constants_(backend.allocate(program.constants.size(), MemoryUse::device)),
      prologue_(require_prologue(program, std::move(prologue))),
      feeds_(program, workspace_->feeds()) {
  copy_to_device(backend, constants_->address(), program.constants.data(), program.constants.size());
}

void ProgramMemory::allocate_prologue() {
  prologue_address_ = prologue_->allocate(backend_, store_ == nullptr ? nullptr : store_->values());
}

Address ProgramMemory::address(const Place& place) const {
  const auto offset = static_cast<std::size_t>(place.offset);
  switch (place.space) {
    case Place::Space::arena:
      return workspace_->address() + offset;
    case Place::Space::feed:
      return feeds_.current()->address() + offset;
    case Place::Space::constant:
      return constants_->address() + offset;
    case Place::Space::prologue:
      return prologue_address_ + offset;
    case Place::Space::value:
      return store_->values() + offset;
    case Place::Space::gradient:
      return store_->gradients() + offset;
    case Place::Space::state:
      return store_->state(place.index) + offset;
    case Place::Space::addend:
      return store_->addends() + offset;
    case Place::Space::shadow:
      return store_->shadow() + offset;
    case Place::Space::scaling:
      return store_->scaling() + offset;
    case Place::Space::input:
    case Place::Space::output:
      break;  // occurs only in the body of a loop
  }
  throw InternalError("a place outside all spaces");
}

}  // namespace plexaura
