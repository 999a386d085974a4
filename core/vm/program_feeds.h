#pragma once

#include <span>
#include <vector>

#include "core/compile/program.h"
#include "core/compile/step_block.h"
#include "core/vm/feed.h"
#include "core/vm/feed_memory.h"

namespace plexaura {

// What the runs of one program are fed.
class ProgramFeeds {
 public:
  // The program and the memory outlive this.
  ProgramFeeds(const Program& program, FeedMemory& memory);

  // Makes the slot of the next run current: that in which all fed values lie already, or one that they are copied to.
  // Allocates nothing once the memory has as many slots as are used in turn. UserError, before anything changes, unless
  // every input of the program is fed exactly once and with its type.
  void fill(std::span<const Feed> feeds, const StepBlock& block);
  // All that reads the current slot has been enqueued.
  void mark_read() { current_->mark_read(Stream::compute); }

  // The slot of the last run, which kernels read; null before the first.
  const FeedSlot* current() const { return current_; }

 private:
  void resolve(std::span<const Feed> feeds);
  // The place of a feed's input in Program::feeds, most often the same; their number for one that is never read.
  std::size_t index_of(std::span<const Feed> feeds, std::size_t place) const;
  // The slot in which the given values lie where the program wants them; null where there is none.
  FeedSlot* slot_of_given() const;

  const Program& program_;
  FeedMemory& memory_;
  FeedSlot* current_ = nullptr;
  std::vector<const std::byte*> given_;  // for each of Program::feeds: the elements
};

}  // namespace plexaura
