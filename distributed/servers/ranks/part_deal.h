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
  // Makes a deal for this number of clients. They are numbered from 0.
  explicit PartDeal(int clients) : unfinished_(static_cast<std::size_t>(clients)) {}

  // Opens a deal. If this deal was begun before, perhaps by a dead server, continues at the part that was reached.
  void open(const DealtSteps& steps);
  bool is_open() const { return next_.has_value(); }
  // Draws a part for a client. A deal must be open.
  Draw draw(int client);
  // Marks the client's first `parts` unfinished parts, or all of them, as finished.
  void finish(int client, std::int64_t parts);
  void finish_all(int client);
  // Returns the unfinished parts of a dead client to the deal. They are the next ones to be drawn. Returns
  // their number.
  std::int64_t take_back(int client);
  // True if a returned part has not been drawn again.
  bool has_returned() const { return !returned_.empty(); }
  // Ends the deal early: only the rest of the current step, and returned parts, can still be drawn. If no
  // deal is open, the next deal has no parts to draw.
  void stop();
  // Closes the deal.
  void close();

  // pack() writes as text which parts of the last deal are finished, for a server that takes over. unpack() reads such a
  // text. If the same deal is opened again, only the other parts are dealt.
  std::string pack() const;
  void unpack(std::istream& packed);

 private:
  std::deque<std::int64_t>& unfinished(int client) { return unfinished_[static_cast<std::size_t>(client)]; }

  std::int64_t parts_ = 1;  // number of parts of a step
  // The number of the next part, counted over all steps of the epoch. Empty: no deal is open.
  std::optional<std::int64_t> next_ = {};
  std::int64_t end_ = 0;
  std::int64_t behind_ = -1;                     // DealtSteps::behind, which identifies the deal
  std::optional<std::int64_t> resumes_at_ = {};  // value of next_ when the deal of behind_ was closed
  std::deque<std::int64_t> returned_;            // parts that are dealt again, numbered as in next_
  // The unfinished parts of each client, in the order in which it has drawn them.
  std::vector<std::deque<std::int64_t>> unfinished_;
  bool stopping_ = false;  // true: the next deal stops as soon as it is opened
};

}  // namespace plexaura
