#pragma once

#include <memory>
#include <vector>

#include "core/device/backend.h"

namespace plexaura::testing {

// Another backend, and how often it was asked for what.
class CountingBackend final : public Backend {
 public:
  struct Counts {
    std::int64_t launches = 0;    // kernels run or captured
    std::int64_t recordings = 0;  // segments captured
    std::int64_t replays = 0;
    std::int64_t allocations = 0;
    std::int64_t events = 0;  // made
  };

  explicit CountingBackend(Backend& inner) : inner_(inner) {}

  const Counts& counts() const { return *counts_; }

  const BackendInfo& info() const override { return inner_.info(); }
  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    ++counts_->allocations;
    return inner_.allocate(bytes, use);
  }
  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    inner_.copy(stream, dst, src, bytes);
  }
  std::unique_ptr<Event> make_event() override {
    ++counts_->events;
    return inner_.make_event();
  }
  std::unique_ptr<Recording> record(const std::function<void()>& body) override;
  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    return inner_.regions(graph, last, uses);
  }
  std::vector<Candidate> propose(const RegionQuery& query) const override { return inner_.propose(query); }
  std::shared_ptr<const Kernel> make(const RegionQuery& query, const Candidate& candidate) override;

 private:
  Backend& inner_;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace plexaura::testing
