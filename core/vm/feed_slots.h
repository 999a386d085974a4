#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "core/compile/program.h"
#include "core/compile/step_block.h"
#include "core/vm/feed.h"

namespace plexaura {

// The step block and the fed values of a program, in two slots that runs use in turn: the host writes one while
// a device still reads the other.
class FeedSlots {
 public:
  // The program and the backend outlive this.
  FeedSlots(const Program& program, Backend& backend);

  // Fills the slot of the next run, as soon as the run before last has read it. Allocates nothing. UserError,
  // before anything changes, unless every input of the program is fed exactly once and with its type.
  void fill(std::span<const Feed> feeds, const StepBlock& block);
  // All that reads the current slot has been enqueued.
  void mark_read();

  std::size_t current() const { return current_; }  // 0 or 1: the slot of the last run
  bool is_filled() const { return slots_[current_].filled; }
  Address address(std::size_t slot) const { return slots_[slot].device->address(); }

 private:
  struct Slot {
    std::unique_ptr<Memory> device;
    std::unique_ptr<Memory> staging;     // null where the device's memory is host memory
    std::unique_ptr<Event> copied;       // the copy from staging is done
    std::unique_ptr<Event> last_reader;  // the run that reads it is done
    bool filled = false;
    bool marked = false;  // last_reader was recorded since it was filled

    std::byte* host() const { return staging ? staging->address() : device->address(); }
  };

  void resolve(std::span<const Feed> feeds);
  // The place of an input in Program::feeds; their number for one that is never read.
  std::size_t index_of(const Feed& feed, std::size_t guess) const;

  const Program& program_;
  Backend& backend_;
  std::array<Slot, 2> slots_;
  std::size_t current_ = 1;
  std::vector<const Tensor*> given_;  // for each of Program::feeds
};

}  // namespace plexaura
