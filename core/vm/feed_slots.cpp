#include "core/vm/feed_slots.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "core/did_you_mean.h"
#include "core/error.h"

namespace plexaura {

namespace {

UserError unknown_input(const Program& program, const std::string& name) {
  std::vector<std::string> known = program.unread_inputs;
  for (const Program::Feed& feed : program.feeds) known.push_back(feed.name);
  return UserError(fmt::format("VM::run: the program has no input '{}'{}", name, did_you_mean(name, known)));
}

// A bool of another byte than 0 and 1 is undefined behaviour where it is read.
void check_flags(const Feed& feed) {
  const Tensor& tensor = feed.tensor();
  if (tensor.dtype() != DType::boolean) return;
  const std::span bytes(tensor.data(), tensor.bytes());
  const auto wrong = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong != bytes.end())
    throw UserError(fmt::format("VM::run: element {} of the input '{}' is the byte {}; a bool is 0 or 1",
                                wrong - bytes.begin(), feed.name(), std::to_integer<int>(*wrong)));
}

}  // namespace

FeedSlots::FeedSlots(const Program& program, Backend& backend)
    : program_(program), backend_(backend), given_(program.feeds.size()) {
  for (Slot& slot : slots_) {
    slot.device = backend.allocate(program.feed_bytes, MemoryUse::device);
    if (!backend.info().host_memory) slot.staging = backend.allocate(program.feed_bytes, MemoryUse::staging);
    slot.copied = backend.make_event();
    slot.last_reader = backend.make_event();
  }
}

void FeedSlots::fill(std::span<const Feed> feeds, const StepBlock& block) {
  resolve(feeds);
  Slot& slot = slots_[current_ ^ 1];
  if (std::exchange(slot.marked, false)) slot.last_reader->wait();
  current_ ^= 1;
  slot.filled = true;
  write_step_block(block, slot.host());
  for (std::size_t i = 0; i < given_.size(); ++i)
    std::memcpy(slot.host() + program_.feeds[i].offset, given_[i]->data(), given_[i]->bytes());
  if (!slot.staging) return;
  backend_.copy(Stream::copy, slot.device->address(), slot.staging->address(), program_.feed_bytes);
  slot.copied->record(Stream::copy);
  slot.copied->hold(Stream::compute);
}

void FeedSlots::mark_read() {
  slots_[current_].last_reader->record(Stream::compute);
  slots_[current_].marked = true;
}

void FeedSlots::resolve(std::span<const Feed> feeds) {
  std::ranges::fill(given_, nullptr);
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const Feed& feed = feeds[i];
    const std::size_t index = index_of(feed, i);
    if (std::ranges::find(feeds.first(i), feed.name(), &Feed::name) != feeds.first(i).end())
      throw UserError(fmt::format("VM::run: the input '{}' was fed twice; feed each once", feed.name()));
    if (index == given_.size()) continue;
    const Program::Feed& wanted = program_.feeds[index];
    if (feed.tensor().type() != wanted.type)
      throw UserError(fmt::format("VM::run: the input '{}' is {} and was fed {}", feed.name(),
                                  to_string(wanted.type), to_string(feed.tensor().type())));
    if (feed.tensor().data() == nullptr)
      throw UserError(
          fmt::format("VM::run: the input '{}' was fed a tensor that was moved from", feed.name()));
    check_flags(feed);
    given_[index] = &feed.tensor();
  }
  const auto missing = std::ranges::find(given_, nullptr);
  if (missing == given_.end()) return;
  const Program::Feed& wanted = program_.feeds[static_cast<std::size_t>(missing - given_.begin())];
  throw UserError(
      fmt::format("VM::run: the input '{}' was not fed; it is {}", wanted.name, to_string(wanted.type)));
}

std::size_t FeedSlots::index_of(const Feed& feed, std::size_t guess) const {
  if (guess < program_.feeds.size() && program_.feeds[guess].name == feed.name()) return guess;
  const auto found = std::ranges::find(program_.feeds, feed.name(), &Program::Feed::name);
  if (found == program_.feeds.end() &&
      std::ranges::find(program_.unread_inputs, feed.name()) == program_.unread_inputs.end())
    throw unknown_input(program_, feed.name());
  return static_cast<std::size_t>(found - program_.feeds.begin());
}

}  // namespace plexaura
