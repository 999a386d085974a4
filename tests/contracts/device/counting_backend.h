#pragma once

#include <memory>
#include <vector>

#include "core/device/forwarding_backend.h"

namespace plexaura::testing {

// Forwards calls to another backend, and counts some of them.
class CountingBackend final : public ForwardingBackend {
 public:
  struct Counts {
    std::int64_t launches = 0;    // kernels run or captured
    std::int64_t recordings = 0;  // segments captured
    std::int64_t replays = 0;
    std::int64_t allocations = 0;
    std::int64_t events = 0;  // made by make_event()
  };

  using ForwardingBackend::ForwardingBackend;

  const Counts& counts() const { return *counts_; }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    ++counts_->allocations;
    return inner().allocate(bytes, use);
  }
  std::unique_ptr<Event> make_event() override {
    ++counts_->events;
    return inner().make_event();
  }
  std::unique_ptr<Recording> record(const std::function<void()>& body) override;
  std::vector<Candidate> propose(const RegionQuery& query) const override;

 private:
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace plexaura::testing
