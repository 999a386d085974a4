#include "core/vm/prologue_memory.h"

#include "core/base/error.h"

namespace plexaura {

Address PrologueMemory::allocate(Backend& backend, Address values) {
  const std::lock_guard lock(mutex_);
  if (!memory_) {
    memory_ = backend.allocate(program_->prologue_bytes, MemoryUse::device);
    backend_ = &backend;
    values_ = values;
  }
  if (backend_ != &backend || values_ != values)
    throw UserError(
        "VM: the prologue memory is that of VMs with another backend or store; make one for each backend and "
        "store");
  return memory_->address();
}

void PrologueMemory::refresh(std::uint64_t version, const std::function<void()>& compute) {
  const std::lock_guard lock(mutex_);
  if (version_ == version) return;
  version_ = 0;
  compute();
  version_ = version;
}

}  // namespace plexaura
