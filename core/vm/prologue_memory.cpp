#include "core/vm/prologue_memory.h"

namespace plexaura {

Address PrologueMemory::allocate(Backend& backend, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!memory_) memory_ = backend.allocate(bytes, MemoryUse::device);
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
