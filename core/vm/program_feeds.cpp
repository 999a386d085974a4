#include "core/vm/program_feeds.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"

namespace plexaura {

namespace {

bool is_fed(std::span<const Feed> feeds, const std::string& name) {
  return std::ranges::find(feeds, name, &Feed::name) != feeds.end();
}

// Returns an error that suggests only inputs that were not fed.
UserError unknown_input(const Program& program, std::span<const Feed> feeds, const std::string& name) {
  std::vector<std::string> missing;
  for (const Program::Feed& feed : program.feeds)
    if (!is_fed(feeds, feed.name)) missing.push_back(feed.name);
  for (const std::string& unread : program.unread_inputs)
    if (!is_fed(feeds, unread)) missing.push_back(unread);
  std::string advice = did_you_mean(name, missing);
  if (advice.empty() && !missing.empty())
    advice = fmt::format("; inputs that were not fed: {}", fmt::join(missing, ", "));
  return UserError(fmt::format("VM::run: the program has no input '{}'{}", name, advice));
}

// Returns the error for a tensor of another type than that of the input.
UserError wrong_type(const Feed& feed, const TensorType& wanted) {
  const std::string_view advice =
      feed.type().shape == wanted.shape
          ? "convert the tensor with Tensor::cast()"
          : "feed this shape, or compile a program for the other one; an Optimizer that is made from a "
            "function compiles one for each shape";
  return UserError(fmt::format("VM::run: the input '{}' is {} and was fed {}; {}", feed.name(),
                               to_string(wanted), to_string(feed.type()), advice));
}

// Throws UserError if a bool is a byte other than 0 or 1, which would be undefined behaviour when it is read.
void check_flags(const Feed& feed) {
  if (feed.type().dtype != DType::boolean) return;
  const std::span bytes(feed.data(), static_cast<std::size_t>(feed.type().bytes()));
  const auto wrong = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong != bytes.end())
    throw UserError(fmt::format("VM::run: element {} of the input '{}' is the byte {}; a bool is 0 or 1",
                                wrong - bytes.begin(), feed.name(), std::to_integer<int>(*wrong)));
}

}  // namespace

ProgramFeeds::ProgramFeeds(const Program& program, FeedMemory& memory)
    : program_(program), memory_(memory), given_(program.feeds.size()) {}

void ProgramFeeds::fill(std::span<const Feed> feeds, const StepBlock& block) {
  resolve(feeds);
  std::shared_ptr<FeedSlot> own;
  FeedSlot* slot = slot_of_given();
  if (slot != nullptr) {
    slot->wait();  // an earlier run with the same values may still read the slot
  } else {
    own = memory_.take_slot(program_.feed_bytes);
    slot = own.get();
    for (std::size_t i = 0; i < given_.size(); ++i)
      std::memcpy(slot->address() + program_.feeds[i].offset, given_[i],
                  static_cast<std::size_t>(program_.feeds[i].type.bytes()));
  }
  write_step_block(block, slot->address());
  current_ = &memory_.send(*slot, program_.feed_bytes);
}

FeedSlot* ProgramFeeds::slot_of_given() const {
  if (given_.empty()) return nullptr;
  FeedSlot* slot = memory_.find(given_[0]);
  if (slot == nullptr || slot->bytes() < program_.feed_bytes) return nullptr;
  for (std::size_t i = 0; i < given_.size(); ++i)
    if (given_[i] != slot->address() + program_.feeds[i].offset) return nullptr;
  return slot;
}

void ProgramFeeds::resolve(std::span<const Feed> feeds) {
  std::ranges::fill(given_, nullptr);
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const Feed& feed = feeds[i];
    const std::size_t index = index_of(feeds, i);
    if (std::ranges::find(feeds.first(i), feed.name(), &Feed::name) != feeds.first(i).end())
      throw UserError(fmt::format("VM::run: the input '{}' was fed twice; feed each once", feed.name()));
    if (index == given_.size()) continue;
    const Program::Feed& wanted = program_.feeds[index];
    if (feed.type() != wanted.type) throw wrong_type(feed, wanted.type);
    check_flags(feed);
    given_[index] = feed.data();
  }
  const auto missing = std::ranges::find(given_, nullptr);
  if (missing == given_.end()) return;
  const Program::Feed& wanted = program_.feeds[static_cast<std::size_t>(missing - given_.begin())];
  throw UserError(
      fmt::format("VM::run: the input '{}' was not fed; it is {}", wanted.name, to_string(wanted.type)));
}

std::size_t ProgramFeeds::index_of(std::span<const Feed> feeds, std::size_t place) const {
  const Feed& feed = feeds[place];
  if (place < program_.feeds.size() && program_.feeds[place].name == feed.name()) return place;
  const auto found = std::ranges::find(program_.feeds, feed.name(), &Program::Feed::name);
  if (found == program_.feeds.end() &&
      std::ranges::find(program_.unread_inputs, feed.name()) == program_.unread_inputs.end())
    throw unknown_input(program_, feeds, feed.name());
  return static_cast<std::size_t>(found - program_.feeds.begin());
}

}  // namespace plexaura
