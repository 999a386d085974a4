#include "distributed/wire/inbox.h"

#include <algorithm>
#include <utility>

namespace plexaura {

Inbox::~Inbox() {
  for (std::size_t i = 0; i < expected_; ++i) {
    Message& message = messages_[at(i)];
    if (!message.has_come) transport_.keep(message.request, std::move(message.data));
  }
}

void Inbox::expect(std::size_t bytes, int from, int tag) {
  if (expected_ == messages_.size()) {
    std::ranges::rotate(messages_, messages_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    messages_.emplace_back();
  }
  Message& message = messages_[at(expected_)];
  if (message.data.size() < bytes) message.data.resize(bytes);
  message.bytes = bytes;
  message.has_come = false;
  message.request = transport_.receive(std::span(message.data).first(bytes), from, tag);
  ++expected_;
}

bool Inbox::have_come(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Message& message = messages_[at(i)];
    if (!message.has_come) message.has_come = transport_.done(message.request);
    if (!message.has_come) return false;
  }
  return true;
}

std::span<const std::byte> Inbox::message(std::size_t index) const {
  const Message& message = messages_[at(index)];
  return std::span(message.data).first(message.bytes);
}

void Inbox::drop(std::size_t count) {
  if (count == 0) return;  // occurs also for an inbox that never expected a message
  first_ = at(count);
  expected_ -= count;
}

}  // namespace plexaura
