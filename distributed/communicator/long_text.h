#pragma once

#include <functional>
#include <string_view>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// Sends a text of any length to another rank, in messages of at most a mebibyte. For each message a rank
// waits for the other one up to the deadline in Peer. Both ranks pass the same tag and the same `what`.
void send_text(Communicator& ranks, const Peer& to, std::string_view text, std::string_view what);
// Receives the text, and passes its pieces to `take`, in order. If `take` throws, nobody informs the sender,
// which waits until its deadline.
void receive_text(Communicator& ranks, const Peer& from,
                  const std::function<void(std::string_view piece)>& take, std::string_view what);

}  // namespace plexaura
