#pragma once

#include <string>

#include "core/device/forwarding_backend.h"

namespace plexaura::testing {

// A backend that reports another kind of processor.
class OfKind final : public ForwardingBackend {
 public:
  OfKind(Backend& inner, const std::string& kind) : ForwardingBackend(inner), info_(inner.info()) {
    info_.kind = kind;
  }
  const BackendInfo& info() const override { return info_; }

 private:
  BackendInfo info_;
};

}  // namespace plexaura::testing
