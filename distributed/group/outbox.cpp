#include "distributed/group/outbox.h"

#include <algorithm>
#include <utility>

namespace plexaura {

Outbox::~Outbox() {
  for (Message& message : messages_)
    if (message.under_way) transport_.keep(message.request, std::move(message.data));
}

void Outbox::send(std::span<const std::byte> data, int to, int tag) {
  std::ranges::copy(data, draft(data.size()).begin());
  post(to, tag);
}

std::span<std::byte> Outbox::draft(std::size_t bytes) {
  Transport::check_length(bytes);
  auto free = std::ranges::find(messages_, false, &Message::under_way);
  if (free == messages_.end()) free = messages_.emplace(messages_.end());
  draft_ = static_cast<std::size_t>(free - messages_.begin());
  free->bytes = bytes;
  if (free->data.size() < bytes) free->data.resize(bytes);
  return free->content();
}

void Outbox::post(int to, int tag) {
  Message& message = messages_[draft_];
  message.to = to;
  message.request = transport_.send(message.content(), to, tag);
  message.under_way = true;
}

std::size_t Outbox::under_way() {
  for (Message& message : messages_)
    if (message.under_way) message.under_way = !transport_.done(message.request);
  return static_cast<std::size_t>(std::ranges::count(messages_, true, &Message::under_way));
}

Outbox::Load Outbox::load(int to) {
  under_way();
  Load load;
  for (const Message& message : messages_) {
    if (!message.under_way || message.to != to) continue;
    load.bytes += message.bytes;
    load.longest = std::max(load.longest, message.bytes);
  }
  return load;
}

}  // namespace plexaura
