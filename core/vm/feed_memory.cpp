#include "core/vm/feed_memory.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/compile/feed_layout.h"

namespace plexaura {

Event& FeedSlot::mark_read(Stream stream) {
  reader_->record(stream);
  marked_ = true;
  return *reader_;
}

void FeedSlot::wait() {
  if (marked_) reader_->wait();
  marked_ = false;
}

std::shared_ptr<FeedSlot> FeedSlots::take(std::size_t bytes) {
  Entry* last = nullptr;  // the idle slot that was taken last, and the idle one taken before it
  Entry* before = nullptr;
  for (Entry& entry : entries_) {
    if (entry.slot.use_count() > 1 || entry.slot->bytes() < bytes) continue;
    if (last == nullptr || entry.taken > last->taken)
      before = std::exchange(last, &entry);
    else if (before == nullptr || entry.taken > before->taken)
      before = &entry;
  }
  if (before == nullptr) {
    const std::size_t size = std::max(bytes, least_bytes_);
    before =
        &entries_.emplace_back(std::make_shared<FeedSlot>(backend_.get(), size, use_, entries_.size()), 0);
  }
  before->slot->wait();
  before->taken = ++takes_;
  return before->slot;
}

FeedSlot* FeedSlots::find(const std::byte* address) const {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    const std::byte* begin = entry.slot->address();
    return !std::less<>()(address, begin) && std::less<>()(address, begin + entry.slot->bytes());
  });
  return found == entries_.end() ? nullptr : found->slot.get();
}

FeedMemory::FeedMemory(Backend& backend, std::size_t least_bytes)
    : backend_(backend),
      written_(backend, backend.info().host_memory ? MemoryUse::device : MemoryUse::staging, least_bytes),
      device_(backend, MemoryUse::device, least_bytes) {}

std::vector<Tensor> FeedMemory::take(std::vector<TensorType> types) {
  FeedLayout whole;
  for (const TensorType& type : types) whole.append(type);
  const std::shared_ptr<FeedSlot> slot = written_.take(whole.bytes());
  FeedLayout layout;
  std::vector<Tensor> tensors;
  tensors.reserve(types.size());
  for (TensorType& type : types) {
    std::byte* address = slot->address() + layout.append(type);
    tensors.push_back(Tensor::in({slot, address}, std::move(type)));
  }
  return tensors;
}

std::shared_ptr<FeedSlot> FeedMemory::take_slot(std::size_t bytes) { return written_.take(bytes); }

FeedSlot* FeedMemory::find(const std::byte* address) const { return written_.find(address); }

FeedSlot& FeedMemory::send(FeedSlot& slot, std::size_t bytes) {
  Backend& backend = backend_.get();
  if (backend.info().host_memory) return slot;
  FeedSlot& received = *device_.take(bytes);
  backend.copy(Stream::copy, received.address(), slot.address(), bytes);
  slot.mark_read(Stream::copy).hold(Stream::compute);
  return received;
}

}  // namespace plexaura
