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

// Carries messages between ranks that are threads of one process.
class ThreadNetwork {
 public:
  explicit ThreadNetwork(int size) : size_(size), unread_(static_cast<std::size_t>(size)) {}

  // Call it once for each rank. The network must outlive the transport.
  std::unique_ptr<Transport> transport(int rank);

  // Drops all messages between this rank and any other from now on.
  void cut(int rank);

  // Like cut(), and the transports of all others report that the rank is dead.
  void bury(int rank);

  // Makes each sent byte take its sender this many seconds from now on.
  void slow_down(double seconds_per_byte) { seconds_per_byte_ = seconds_per_byte; }

  // Return what has been sent from one rank to another.
  std::size_t bytes_sent(int from, int to);
  int messages_sent(int from, int to);

  // Returns the number of receives that had neither finished nor been given up when their transport was
  // destroyed.
  int forgotten();

 private:
  class Member;
  std::map<int, int>& colours_of(const std::string& call);
  std::atomic<int>& unread(int rank) { return unread_[static_cast<std::size_t>(rank)]; }
  struct Channel {
    std::string group;  // the name that a transport and its duplicates share
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
  std::map<std::string, std::map<int, int>> colours_;  // for each split, the colours by rank
  std::map<std::pair<int, int>, std::size_t> bytes_sent_;
  std::map<std::pair<int, int>, int> messages_sent_;
  int forgotten_ = 0;
};

// Runs the body once for each rank, in its own thread. Returns how each ended: "fine", "says ..." for an
// error that this rank reports, "hears ..." for one that another rank reports.
std::vector<std::string> endings(int ranks, const std::function<void(int rank)>& body);

// Returns how many of them begin with these words.
int count_endings(const std::vector<std::string>& endings, const std::string& begin);

}  // namespace plexaura::testing
