#pragma once

#include <atomic>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "distributed/wire/transport.h"

namespace plexaura::testing {

// Messages between ranks that are threads of one process.
class ThreadNetwork {
 public:
  explicit ThreadNetwork(int size) : size_(size), unread_(static_cast<std::size_t>(size)) {}

  // Once for each rank; the network must outlive it.
  std::unique_ptr<Transport> transport(int rank);

  // From now on nothing passes between this rank and any other.
  void cut(int rank);

  // The same, and the transports of all others know that it is dead.
  void bury(int rank);

  // From now on each byte that is sent takes its sender so long.
  void slow_down(double seconds_per_byte) { seconds_per_byte_ = seconds_per_byte; }

  // What has been sent from one rank to another.
  std::size_t bytes_sent(int from, int to);
  int messages_sent(int from, int to);

  // Messages that were to be received, and had neither arrived nor been given up when their transport went.
  int forgotten();

 private:
  class Member;
  std::map<int, int>& colours_of(const std::string& call);
  std::atomic<int>& unread(int rank) { return unread_[static_cast<std::size_t>(rank)]; }
  struct Channel {
    std::string group;  // of transports that are duplicates of each other
    int from;
    int to;
    int tag;
    auto operator<=>(const Channel&) const = default;
  };
  using Message = std::vector<std::byte>;

  int size_;
  std::atomic<double> seconds_per_byte_ = 0;
  std::mutex mutex_;
  std::map<Channel, std::deque<Message>> messages_;
  // Counts the messages that lie here for each rank. Ranks poll it, and lock only if there is a message.
  std::vector<std::atomic<int>> unread_;
  std::set<int> cut_;
  std::set<int> dead_;
  std::map<std::string, std::map<int, int>> colours_;  // of each split, by rank
  std::map<std::pair<int, int>, std::size_t> bytes_sent_;
  std::map<std::pair<int, int>, int> messages_sent_;
  int forgotten_ = 0;
};

// Runs the body once per rank, each on a thread of its own, and tells how each ended: "fine", "says ..." for
// an error that the rank speaks, "hears ..." for one that another rank speaks.
std::vector<std::string> endings(int ranks, const std::function<void(int rank)>& body);

// How many of them begin with these words.
int count_endings(const std::vector<std::string>& endings, const std::string& begin);

}  // namespace plexaura::testing
