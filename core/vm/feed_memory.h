#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/export.h"
#include "core/device/backend_use.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// Memory for the step block and the inputs of one run: see FeedLayout.
class FeedSlot {
 public:
  FeedSlot(Backend& backend, std::size_t bytes, MemoryUse use, std::size_t index)
      : memory_(backend.allocate(bytes, use)), reader_(backend.make_event()), index_(index) {}

  std::byte* address() const { return memory_->address(); }
  std::size_t bytes() const { return memory_->bytes(); }
  std::size_t index() const { return index_; }  // the slot's number in its FeedSlots

  // Records an event in the stream: all enqueued work that reads the slot is done when the event is reached.
  // Returns the event.
  Event& mark_read(Stream stream);
  // Waits until no enqueued work reads the slot. Throws a failure of the device.
  void wait();

 private:
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Event> reader_;
  std::size_t index_;
  bool marked_ = false;  // mark_read() was called since the last wait()
};

// A pool of FeedSlots with one kind of memory. A slot is allocated when it is needed.
class FeedSlots {
 public:
  FeedSlots(Backend& backend, MemoryUse use, std::size_t least_bytes)
      : backend_(backend), use_(use), least_bytes_(least_bytes) {}

  // Returns a slot of at least `bytes` bytes that nobody else uses. Waits until no enqueued work reads it.
  // Takes turns between at least two slots, so that one can be written while the device still reads the
  // other.
  std::shared_ptr<FeedSlot> take(std::size_t bytes);
  FeedSlot* find(const std::byte* address) const;

 private:
  struct Entry {
    std::shared_ptr<FeedSlot> slot;
    std::uint64_t taken;  // number of the call of take() that returned the slot last
  };

  BackendUse backend_;
  MemoryUse use_;
  std::size_t least_bytes_;
  std::vector<Entry> entries_;
  std::uint64_t takes_ = 0;
};

// The memory from which runs are fed. Programs that never run at the same time may share it. A data loader
// writes batches into tensors from take(). A run that is fed these tensors reads them in place; if the
// device's memory is not host memory, it copies them from there to the device. Only one thread may call these
// functions; any thread may write the tensors. Throws UserError if the backend was destroyed. A backend that
// a std::shared_ptr owns is kept alive.
class PLEXAURA_API FeedMemory {
 public:
  // `least_bytes` is the minimum size of a slot: the largest Program::feed_bytes, so that all programs use the same slots.
  FeedMemory(Backend& backend, std::size_t least_bytes);

  // Returns uninitialised tensors of these types in a slot of their own, with the layout of the inputs of a program whose
  // graph has inputs of these types in this order. The slot is reused when all the tensors are destroyed and no run reads
  // them any more.
  std::vector<Tensor> take(std::vector<TensorType> types);

  // For the VM: returns a slot in host memory for a run's step block and inputs.
  std::shared_ptr<FeedSlot> take_slot(std::size_t bytes);
  // Returns the slot that contains the address; null if none does.
  FeedSlot* find(const std::byte* address) const;
  // Returns the slot from which kernels read: the given slot, or a slot in device memory to which the given slot is
  // copied.
  FeedSlot& send(FeedSlot& slot, std::size_t bytes);

 private:
  BackendUse backend_;
  FeedSlots written_;  // slots in host memory
  FeedSlots device_;   // slots in device memory; unused if the device's memory is host memory
};

}  // namespace plexaura
