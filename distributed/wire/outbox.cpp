#include "distributed/wire/outbox.h"

#include <algorithm>
#include <utility>

namespace plexaura {

Outbox::~Outbox() {
  for (Message& message : messages_)
    if (message.under_way) transport_.keep(message.request, std::move(message.data));
}

void Outbox::send(std::span<const std::byte> data, int to, int tag) {
  const bool is_draft = draft_ && messages_[*draft_].data.data() == data.data();
  if (!is_draft) std::ranges::copy(data, draft(data.size()).begin());
  Message& message = messages_[*draft_];
  message.to = to;
  message.request = transport_.send(message.content(), to, tag);
  message.under_way = true;
  draft_.reset();
}

std::span<std::byte> Outbox::draft(std::size_t bytes) {
  Transport::check_length(bytes);
  if (!draft_ && free_.empty()) {
    draft_ = messages_.size();
    messages_.emplace_back();
  } else if (!draft_) {
    draft_ = free_.back();
    free_.pop_back();
  }
  Message& message = messages_[*draft_];
  message.bytes = bytes;
  if (message.data.size() < bytes) message.data.resize(bytes);
  return message.content();
}

std::size_t Outbox::under_way() {
  std::size_t count = 0;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    if (!message.under_way) continue;
    message.under_way = !transport_.done(message.request);
    if (message.under_way)
      ++count;
    else
      free_.push_back(i);
  }
  return count;
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
