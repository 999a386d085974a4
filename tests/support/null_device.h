#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/device/backend.h"

namespace plexaura::testing {

// A device that computes nothing, for tests of everything before a program runs. It offers a kernel for every
// op, even for ops without any kernel. Memory has addresses but no bytes, so that plans of any size can be
// tested.
class NullDevice final : public Backend {
 public:
  struct Options {
    std::function<Layout(const TensorType&)> layout = {};  // of every operand; default: row-major
    std::function<std::vector<Region>(const Graph&, NodeId, const Uses&)> regions = {};  // default: none
    std::set<std::string, std::less<>> without = {};  // ops that have no kernel here
    // Any output may use the memory of any input of its type.
    bool in_place = true;
    bool records = true;
    std::size_t workspace = 0;  // of every kernel
  };

  NullDevice() : NullDevice(Options{}) {}
  explicit NullDevice(Options options) : options_(std::move(options)) {}

  const BackendInfo& info() const override { return info_; }
  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override;
  void copy(Stream, Address, const std::byte*, std::size_t) override {}
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<Recording> record(const std::function<void()>& body) override;
  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override;
  std::vector<Candidate> propose(const RegionQuery& query) const override;

  // Return what was allocated and made so far.
  std::size_t allocated_bytes() const { return allocated_bytes_; }
  std::size_t kernels_made() const { return counts_->kernels; }
  std::size_t launches() const { return counts_->launches; }

  struct Counts {
    std::size_t kernels = 0;
    std::size_t launches = 0;
  };

 private:
  Layout layout_of(const RegionQuery& query, Value value) const;

  BackendInfo info_{"null", "computes nothing", false};
  Options options_;
  std::size_t allocated_bytes_ = 0;
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace plexaura::testing
