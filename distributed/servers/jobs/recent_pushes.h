#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace plexaura {

// The last pushes of each working client. If the training of a client turns out to diverge, its last pushes
// may have spoiled the weights. A push is identified by the version of the weights before it.
class RecentPushes {
 public:
  static constexpr std::size_t most = 32;  // number of pushes of a client that are kept

  void add(int client, std::int64_t version) {
    std::deque<std::int64_t>& versions = versions_[client];
    versions.push_back(version);
    if (versions.size() > most) versions.pop_front();
  }
  // Removes a client that has left or was lost. Returns its pushes, from the oldest to the newest.
  std::deque<std::int64_t> forget(int client) {
    auto node = versions_.extract(client);
    return node.empty() ? std::deque<std::int64_t>() : std::move(node.mapped());
  }
  // Returns the version of the oldest push of all clients. Returns nothing if there are no pushes.
  std::optional<std::int64_t> oldest() const {
    std::optional<std::int64_t> oldest;
    for (const auto& [client, versions] : versions_)
      oldest = std::min(oldest.value_or(versions.front()), versions.front());
    return oldest;
  }

 private:
  std::map<int, std::deque<std::int64_t>> versions_;  // versions of each client's pushes; no list is empty
};

}  // namespace plexaura
