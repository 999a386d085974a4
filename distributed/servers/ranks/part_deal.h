#pragma once

#include <cstdint>
#include <deque>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange/dealer.h"

namespace plexaura {

// Deals out the parts of an epoch's steps, in the order of steps. A part is finished once: what a client has drawn and
// leaves behind is dealt again.
class PartDeal {
 public:
  // They are counted from 0.
  explicit PartDeal(int clients) : unfinished_(static_cast<std::size_t>(clients)) {}

  // The same one again, of a server that has died, goes on where that one was.
  void open(const DealtSteps& steps);
  bool is_open() const { return next_.has_value(); }
  // Of an open deal, as all that follow but stop().
  Draw draw(int client);
  // The first so many of the parts that the client has drawn and not finished; all of them.
  void finish(int client, std::int64_t parts);
  void finish_all(int client);
  // The client has died: those parts are the next to be drawn. How many there are.
  std::int64_t take_back(int client);
  // Whether some of these have not been drawn again yet.
  bool has_returned() const { return !returned_.empty(); }
  // Only what is left of the step that is being dealt is still to be drawn, and what was taken back: nothing of a deal
  // that is yet to be opened, nor where all parts of a step have just been drawn.
  void stop();
  // No deal is open.
  void close();

  // Which parts of the last deal are finished, for a server that goes on: if it is opened again it has the others left.
  std::string pack() const;
  void unpack(std::istream& packed);

 private:
  std::deque<std::int64_t>& unfinished(int client) { return unfinished_[static_cast<std::size_t>(client)]; }

  std::int64_t parts_ = 1;  // of a step
  std::optional<std::int64_t> next_ =
      {};  // counts the parts of all steps of the epoch; none: no deal is open
  std::int64_t end_ = 0;
  std::int64_t behind_ = -1;                   // which deal it is, or was: DealtSteps::behind
  std::optional<std::int64_t> go_on_at_ = {};  // next_ of that deal, where it is not open
  std::deque<std::int64_t> returned_;          // as next_ counts
  std::vector<std::deque<std::int64_t>>
      unfinished_;         // of each client, in the order in which it has drawn them
  bool stopping_ = false;  // a deal that is yet to be opened
};

}  // namespace plexaura
