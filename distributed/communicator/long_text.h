#pragma once

#include <functional>
#include <string_view>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// A text of any length from one rank to another, in messages of at most a mebibyte, each of which may wait for
// the other end as long as the Peer says. Both ends name the same tag and the same `what`.
void send_text(Communicator& ranks, const Peer& to, std::string_view text, std::string_view what);
// Gives the pieces to `take`, in order. What `take` throws leaves the sender alone until it gives up.
void receive_text(Communicator& ranks, const Peer& from,
                  const std::function<void(std::string_view piece)>& take, std::string_view what);

}  // namespace plexaura
