#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plexaura {

// Where one rank runs. Ranks are on one node when both host and machine are equal.
struct ProcessPlace {
  std::string host;
  int process = 0;                 // its process id
  std::string process_space;       // ids mean the same to two processes only within one space (container)
  std::string machine;             // drawn by the kernel when it started: two machines may bear one name
  int number = 0;                  // its rank among all that are left; -1: not known
  int started_as = -1;             // its rank when all were there; -1: that number
  std::int64_t process_start = 0;  // since the machine has started: ids are used again
};

// Where all ranks of a communicator run.
class Topology {
 public:
  Topology(std::vector<ProcessPlace> places, int own_rank);

  const ProcessPlace& of(int rank) const { return places_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(places_.size()); }
  int nodes() const { return static_cast<int>(nodes_.size()); }
  // The ranks of each node, ascending; nodes in the order of their lowest rank.
  const std::vector<std::vector<int>>& by_node() const { return nodes_; }
  int own_node() const { return own_node_; }
  int own_node_rank() const { return own_node_rank_; }
  const std::vector<int>& own_node_ranks() const { return nodes_[static_cast<std::size_t>(own_node_)]; }

  // Whether the process of this rank is known to be gone. False where that cannot be seen from here.
  bool is_dead(int rank) const;
  // Whether it is known to be stopped (SIGSTOP).
  bool is_stopped(int rank) const;
  // Kills the process of this rank, on this host, if it is stopped (SIGSTOP). Whether it was.
  bool kill_if_stopped(int rank) const;
  // The rank as the run was started, which is what a sentence names.
  int number(int rank) const { return of(rank).started_as < 0 ? of(rank).number : of(rank).started_as; }
  std::vector<int> numbers_of(const std::vector<int>& ranks) const;
  // ProcessPlace::number of all ranks; empty where they are not known.
  const std::vector<int>& numbers() const { return numbers_; }
  // "rank 2", and "ranks 1 and 2 on h1, rank 4 on h2" where there are several nodes
  std::string name(int rank) const { return list({rank}); }
  std::string list(const std::vector<int>& ranks) const;
  // The hosts of other nodes on which nobody is but these ranks.
  std::vector<std::string> hosts_without(const std::vector<int>& ranks) const;

 private:
  bool sees_process_of(int rank) const;

  std::vector<ProcessPlace> places_;
  int own_rank_;
  std::vector<int> numbers_;
  std::vector<std::vector<int>> nodes_;
  int own_node_ = 0;
  int own_node_rank_ = 0;
};

ProcessPlace this_place();
// Of another process of this machine.
ProcessPlace place_of(int process);
std::string encode(const ProcessPlace& place);
ProcessPlace decode_place(const std::string& text);

}  // namespace plexaura
