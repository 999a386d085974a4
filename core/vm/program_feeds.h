#pragma once

#include <span>
#include <vector>

#include "core/compile/program.h"
#include "core/compile/step_block.h"
#include "core/vm/feed.h"
#include "core/vm/feed_memory.h"

namespace plexaura {

// Puts the feeds of a program's runs into slots.
class ProgramFeeds {
 public:
  // The program and the memory must outlive this object.
  ProgramFeeds(const Program& program, FeedMemory& memory);

  // Makes the slot of the next run current: the slot that has all fed values already, or another slot to which they are
  // copied. Allocates nothing once the memory has as many slots as are used in turn. Throws UserError, before anything
  // changes, unless every input of the program is fed exactly once and with its type.
  void fill(std::span<const Feed> feeds, const StepBlock& block);
  // Called when all work that reads the current slot is enqueued.
  void mark_read() { current_->mark_read(Stream::compute); }

  // The slot of the last run, which kernels read; null before the first.
  const FeedSlot* current() const { return current_; }

 private:
  void resolve(std::span<const Feed> feeds);
  // Returns the index in Program::feeds of the input of feeds[place]; usually it is `place`. Returns the size of
  // Program::feeds for an input that is never read. Throws UserError if the program has no such input.
  std::size_t index_of(std::span<const Feed> feeds, std::size_t place) const;
  // Returns the slot that contains all given values at the offsets that the program expects; null if there is none.
  FeedSlot* slot_of_given() const;

  const Program& program_;
  FeedMemory& memory_;
  FeedSlot* current_ = nullptr;
  std::vector<const std::byte*> given_;  // addresses of the fed elements, in the order of Program::feeds
};

}  // namespace plexaura
