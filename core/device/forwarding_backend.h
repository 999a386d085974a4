#pragma once

#include "core/device/backend.h"

namespace plexaura {

// Forwards all calls to another backend, which must outlive this object. Derived classes override single functions.
class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(Backend& inner) : inner_(inner) {}

  std::recursive_mutex& turn() const override { return inner_.turn(); }
  const BackendInfo& info() const override { return inner_.info(); }
  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    return inner_.allocate(bytes, use);
  }
  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    inner_.copy(stream, dst, src, bytes);
  }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    return inner_.record(body);
  }
  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    return inner_.regions(graph, last, uses);
  }
  std::vector<Repeat> repeats(const Graph& graph, NodeId last, const Uses& uses) const override {
    return inner_.repeats(graph, last, uses);
  }
  std::vector<Candidate> propose(const RegionQuery& query) const override { return inner_.propose(query); }

 protected:
  Backend& inner() { return inner_; }
  const Backend& inner() const { return inner_; }

 private:
  Backend& inner_;
};

}  // namespace plexaura
