#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace plexaura {

// The last pushes of each client that is at work: if its training turns out to diverge, these may have spoiled the
// weights. A push is known by the version of the weights that it was taken into.
class RecentPushes {
 public:
  static constexpr std::size_t most = 32;  // of a client

  void add(int client, std::int64_t version) {
    std::deque<std::int64_t>& versions = versions_[client];
    versions.push_back(version);
    if (versions.size() > most) versions.pop_front();
  }
  // Of a client that has left, or was lost. Its pushes, the oldest first.
  std::deque<std::int64_t> forget(int client) {
    auto node = versions_.extract(client);
    return node.empty() ? std::deque<std::int64_t>() : std::move(node.mapped());
  }
  // The version of the oldest of all; none: there are no pushes.
  std::optional<std::int64_t> oldest() const {
    std::optional<std::int64_t> oldest;
    for (const auto& [client, versions] : versions_)
      oldest = std::min(oldest.value_or(versions.front()), versions.front());
    return oldest;
  }

 private:
  std::map<int, std::deque<std::int64_t>> versions_;  // none is empty
};

}  // namespace plexaura
