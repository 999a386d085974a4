#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/device/backend.h"

namespace plexaura {

// A backend that keeps an account of the kernels that programs get from it; without `kernels` they compute
// nothing.
class WatchedBackend final : public Backend {
 public:
  explicit WatchedBackend(std::unique_ptr<Backend> backend, bool kernels = true)
      : backend_(std::move(backend)), kernels_(kernels) {}

  // A line of JSON: the kernels, the seconds that the backend expects of them, the share of portable kernels
  // in these with their names, and what was left to the reference code of a library.
  std::string plan() const;

  const BackendInfo& info() const override { return backend_->info(); }
  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    return backend_->allocate(bytes, use);
  }
  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    backend_->copy(stream, dst, src, bytes);
  }
  std::unique_ptr<Event> make_event() override { return backend_->make_event(); }
  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    return backend_->record(body);
  }
  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    return backend_->regions(graph, last, uses);
  }
  std::vector<Candidate> propose(const RegionQuery& query) const override;

 private:
  struct Account {
    int kernels = 0;
    double seconds = 0;
    std::map<std::string, double> portable = {};  // seconds by kind of region
    std::set<std::string> reference = {};         // kinds of regions

    void add(const std::string& kind, const std::string& implementation, double seconds_of_kernel);
  };

  std::unique_ptr<Backend> backend_;
  bool kernels_;
  std::shared_ptr<Account> account_ = std::make_shared<Account>();
};

}  // namespace plexaura
