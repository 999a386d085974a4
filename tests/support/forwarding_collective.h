#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/collective.h"

namespace plexaura::testing {

// One rank's side of a collective, which passes all calls on. Derived classes look at calls or change them.
class ForwardingCollective : public Collective {
 public:
  // `ranks` must outlive this object.
  explicit ForwardingCollective(Collective& ranks) : ranks_(ranks) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  double deadline_seconds() const override { return ranks_.deadline_seconds(); }
  void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) override {
    if (makes(what)) ranks_.sum(dtype, data, count, what);
  }
  void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) override {
    if (makes(what)) ranks_.broadcast(data, bytes, root, what);
  }
  void bring_to_0(std::byte* data, std::size_t bytes, int from, std::string_view what) override {
    if (makes(what)) ranks_.bring_to_0(data, bytes, from, what);
  }
  std::vector<std::string> gather_all(const std::string& mine, std::string_view what) override {
    if (makes(what)) return ranks_.gather_all(mine, what);
    return std::vector<std::string>(static_cast<std::size_t>(size()), mine);
  }

 private:
  // Called when this rank begins a call. If it returns false, the call returns at once, as if all ranks had the
  // data of this one.
  virtual bool makes(std::string_view /*what*/) { return true; }

  Collective& ranks_;
};

}  // namespace plexaura::testing
