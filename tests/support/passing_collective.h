#pragma once

#include <atomic>
#include <string_view>
#include <thread>

#include "tests/support/forwarding_collective.h"

namespace plexaura::testing {

// One rank's side of a collective. It completes calls with this name although the other ranks have lost a
// rank there: it waits in the call until the others know of the loss, and gets no data from them. Without a
// name it behaves normally.
class PassingCollective final : public ForwardingCollective {
 public:
  // All arguments must outlive this object.
  PassingCollective(Collective& ranks, std::string_view call, const std::atomic<bool>& others_have_heard)
      : ForwardingCollective(ranks), call_(call), others_have_heard_(others_have_heard) {}

 private:
  bool makes(std::string_view what) override {
    if (call_.empty() || what != call_) return true;
    while (!others_have_heard_) std::this_thread::yield();
    return false;
  }

  std::string_view call_;
  const std::atomic<bool>& others_have_heard_;
};

}  // namespace plexaura::testing
