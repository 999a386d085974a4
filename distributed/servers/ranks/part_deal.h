#pragma once

#include <cstdint>
#include <deque>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange/dealer.h"

namespace plexaura {

// Deals out the parts of an epoch's steps, in the order of steps. Each part is finished once: a part that a client has drawn and not
// finished when it dies is dealt again.
class PartDeal {
 public:
  // Clients are numbered from 0.
  explicit PartDeal(int clients) : unfinished_(static_cast<std::size_t>(clients)) {}

  // Opens a deal. If a server that has died had begun this deal, it continues where that server was.
  void open(const DealtSteps& steps);
  bool is_open() const { return next_.has_value(); }
  // Draws a part for a client. Needs an open deal.
  Draw draw(int client);
  // Marks the first `parts` of the client's unfinished parts as finished; or all of them.
  void finish(int client, std::int64_t parts);
  void finish_all(int client);
  // Called when a client has died: its unfinished parts are the next to be drawn. Returns how many there are.
  std::int64_t take_back(int client);
  // True if some of the returned parts have not been drawn again.
  bool has_returned() const { return !returned_.empty(); }
  // Deals no further step: only the rest of the current step, and returned parts, can still be drawn. If no deal is open, the next
  // deal has no parts to draw.
  void stop();
  // Closes the deal.
  void close();

  // Writes as text which parts of the last deal are finished, for a server that takes over; and reads it. If the same deal is opened
  // again, only the other parts are dealt.
  std::string pack() const;
  void unpack(std::istream& packed);

 private:
  std::deque<std::int64_t>& unfinished(int client) { return unfinished_[static_cast<std::size_t>(client)]; }

  std::int64_t parts_ = 1;  // parts of a step
  // The next part, counted over all steps of the epoch. None: no deal is open.
  std::optional<std::int64_t> next_ = {};
  std::int64_t end_ = 0;
  std::int64_t behind_ = -1;                     // identifies the deal: DealtSteps::behind
  std::optional<std::int64_t> resumes_at_ = {};  // next_ of that deal while it is closed
  std::deque<std::int64_t> returned_;            // parts to deal again, numbered as in next_
  // Parts of each client, in the order in which it has drawn them.
  std::vector<std::deque<std::int64_t>> unfinished_;
  bool stopping_ = false;  // the next deal stops as soon as it is opened
};

}  // namespace plexaura
