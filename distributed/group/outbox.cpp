#include "distributed/group/outbox.h"

#include <algorithm>
#include <utility>

namespace plexaura {

Outbox::~Outbox() {
  for (Message& message : messages_)
    if (message.under_way) transport_.keep(message.request, std::move(message.data));
}

void Outbox::send(std::span<const std::byte> data, int to, int tag) {
  transport_.check_length(data.size());
  auto free = std::ranges::find(messages_, false, &Message::under_way);
  if (free == messages_.end()) free = messages_.emplace(messages_.end());
  free->to = to;
  free->data.assign(data.begin(), data.end());
  free->request = transport_.send(free->data, to, tag);
  free->under_way = true;
}

std::size_t Outbox::under_way() {
  for (Message& message : messages_)
    if (message.under_way) message.under_way = !transport_.done(message.request);
  return static_cast<std::size_t>(std::ranges::count(messages_, true, &Message::under_way));
}

std::size_t Outbox::bytes_under_way(int to) {
  under_way();
  std::size_t bytes = 0;
  for (const Message& message : messages_)
    if (message.under_way && message.to == to) bytes += message.data.size();
  return bytes;
}

}  // namespace plexaura
