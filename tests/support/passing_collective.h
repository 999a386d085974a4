#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/exchange/collective.h"

namespace plexaura::testing {

// One rank's side of a collective, like that of a rank which completes calls with this name although the
// others have lost a rank there. It waits in the call until the others know of the loss, and gets no data
// from them. Without a name it behaves normally.
class PassingCollective final : public Collective {
 public:
  // All arguments must outlive this object.
  PassingCollective(Collective& ranks, std::string_view call, const std::atomic<bool>& others_have_heard)
      : ranks_(ranks), call_(call), others_have_heard_(others_have_heard) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  double deadline_seconds() const override { return ranks_.deadline_seconds(); }
  void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view what) override {
    if (!passes(what)) ranks_.sum(dtype, data, count, what);
  }
  void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) override {
    if (!passes(what)) ranks_.broadcast(data, bytes, root, what);
  }
  std::vector<std::string> gather_all(const std::string& mine, std::string_view what) override {
    if (!passes(what)) return ranks_.gather_all(mine, what);
    return std::vector<std::string>(static_cast<std::size_t>(size()), mine);
  }

 private:
  bool passes(std::string_view what) const {
    if (call_.empty() || what != call_) return false;
    while (!others_have_heard_) std::this_thread::yield();
    return true;
  }

  Collective& ranks_;
  std::string_view call_;
  const std::atomic<bool>& others_have_heard_;
};

}  // namespace plexaura::testing
