#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/exchange/collective.h"

namespace plexaura::testing {

// Thrown by a rank that leaves. It is no error, and only the rank's own thread catches it.
struct Gone {};

// One rank's side of a collective. The rank leaves when it begins a call with this name. Without a name it
// stays.
class LeavingCollective final : public Collective {
 public:
  // `ranks` and the name must outlive this object.
  LeavingCollective(Collective& ranks, std::string_view call) : ranks_(ranks), call_(call) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  double deadline_seconds() const override { return ranks_.deadline_seconds(); }
  void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) override {
    leave_at(what);
    ranks_.sum(dtype, data, count, what);
  }
  void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) override {
    leave_at(what);
    ranks_.broadcast(data, bytes, root, what);
  }
  std::vector<std::string> gather_all(const std::string& mine, std::string_view what) override {
    leave_at(what);
    return ranks_.gather_all(mine, what);
  }

 private:
  void leave_at(std::string_view what) const {
    if (!call_.empty() && what == call_) throw Gone();
  }

  Collective& ranks_;
  std::string_view call_;
};

}  // namespace plexaura::testing
