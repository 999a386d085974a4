#pragma once

#include <string_view>

#include "tests/support/forwarding_collective.h"

namespace plexaura::testing {

// Thrown by a rank that leaves. It is no error, and only the rank's own thread catches it.
struct Gone {};

// One rank's side of a collective. The rank leaves when it begins a call with this name. Without a name it
// stays.
class LeavingCollective final : public ForwardingCollective {
 public:
  // `ranks` and the name must outlive this object.
  LeavingCollective(Collective& ranks, std::string_view call) : ForwardingCollective(ranks), call_(call) {}

 private:
  bool makes(std::string_view what) override {
    if (!call_.empty() && what == call_) throw Gone();
    return true;
  }

  std::string_view call_;
};

}  // namespace plexaura::testing
