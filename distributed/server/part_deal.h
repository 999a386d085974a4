#pragma once

#include <cstdint>
#include <optional>

#include "core/params/dealer.h"

namespace plexaura {

// Deals out the parts of an epoch's steps, in the order of steps, each once.
class PartDeal {
 public:
  // Into so many parts the batch of a step is cut.
  explicit PartDeal(std::int64_t parts) : parts_(parts) {}

  // The first draw opens the deal of the steps from `first` up to `end`.
  Draw draw(std::int64_t first, std::int64_t end);
  // Only what is left of the step that is being dealt is still to be drawn: nothing before the first draw, and where all
  // parts of a step have just been drawn.
  void stop();
  // What is drawn next opens another deal.
  void close();

 private:
  std::int64_t parts_;
  std::optional<std::int64_t> next_ =
      {};  // counts the parts of all steps of the epoch; none: no deal is open
  std::int64_t end_ = 0;
  bool stopping_ = false;  // a deal that is yet to be opened
};

}  // namespace plexaura
