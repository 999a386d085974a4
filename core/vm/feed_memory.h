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
  std::size_t index() const { return index_; }  // among the slots of its kind

  // All that reads the slot stands in this stream now.
  Event& mark_read(Stream stream);
  // Until nothing reads it any more. Throws the device's failure.
  void wait();

 private:
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Event> reader_;
  std::size_t index_;
  bool marked_ = false;  // since the last wait
};

// Slots of one kind of memory, made when they are needed.
class FeedSlots {
 public:
  FeedSlots(Backend& backend, MemoryUse use, std::size_t least_bytes)
      : backend_(backend), use_(use), least_bytes_(least_bytes) {}

  // A slot that nobody else holds and nothing reads. Two are used in turn, so that one can be written while the device
  // still reads the other.
  std::shared_ptr<FeedSlot> take(std::size_t bytes);
  FeedSlot* find(const std::byte* address) const;

 private:
  struct Entry {
    std::shared_ptr<FeedSlot> slot;
    std::uint64_t taken;  // the number of the last take()
  };

  BackendUse backend_;
  MemoryUse use_;
  std::size_t least_bytes_;
  std::vector<Entry> entries_;
  std::uint64_t takes_ = 0;
};

// What runs are fed from. Programs that never run at the same time share one. Whoever makes batches writes them into
// tensors from take(), and a run that is fed these reads them where they lie, or, on a device whose memory is not host
// memory, copies them from there. One thread calls; any thread may write the tensors.
// UserError where the backend is gone, unless a std::shared_ptr owns that.
class PLEXAURA_API FeedMemory {
 public:
  // `least_bytes` of a slot: the largest Program::feed_bytes, so that all programs use the same slots.
  FeedMemory(Backend& backend, std::size_t least_bytes);

  // Tensors of these types, uninitialised, in a slot of their own, which is taken again when the last of them is gone
  // and no run reads them any more. They lie as the inputs of a program whose graph has inputs of these types in this
  // order.
  std::vector<Tensor> take(std::vector<TensorType> types);

  // For the VM: host memory to write a run's step block and inputs into.
  std::shared_ptr<FeedSlot> take_slot(std::size_t bytes);
  // The slot that an address lies in; null where it lies in none.
  FeedSlot* find(const std::byte* address) const;
  // The slot that kernels read: this one, or one of the device's to which it is copied.
  FeedSlot& send(FeedSlot& slot, std::size_t bytes);

 private:
  BackendUse backend_;
  FeedSlots written_;  // by the host
  FeedSlots device_;   // none where the device's memory is host memory
};

}  // namespace plexaura
