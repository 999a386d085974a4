#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plexaura {

// The place of one rank. Ranks are on one node if both host and machine are equal.
struct ProcessPlace {
  std::string host;
  int process = 0;  // process id
  // Name space of process ids, such as a container; two processes can use each other's ids only within one
  // space.
  std::string process_space;
  std::string machine;  // boot id of the kernel; distinguishes two machines with one name
  int number = 0;       // rank among all ranks that are left; -1: unknown
  int started_as = -1;  // rank at the start of the run; -1: it is equal to `number`
  // Start of the process, in clock ticks since the machine started; process ids are reused.
  std::int64_t process_start = 0;
};

// The places of all ranks of a communicator.
class Topology {
 public:
  Topology(std::vector<ProcessPlace> places, int own_rank);

  const ProcessPlace& of(int rank) const { return places_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(places_.size()); }
  int nodes() const { return static_cast<int>(nodes_.size()); }
  // Returns the ranks of each node in ascending order. Nodes are ordered by their lowest rank.
  const std::vector<std::vector<int>>& by_node() const { return nodes_; }
  int own_node() const { return own_node_; }
  int own_node_rank() const { return own_node_rank_; }
  const std::vector<int>& own_node_ranks() const { return nodes_[static_cast<std::size_t>(own_node_)]; }

  // True if the process of this rank is known to have ended. False if this process cannot see it. Reads /proc, because another
  // process may have its id by now.
  bool is_dead(int rank) const;
  // True if this process could see the process of this rank, and no process has its id. Much faster than is_dead(), for calls
  // with each message.
  bool has_no_process(int rank) const;
  // True if the process of this rank is known to be stopped (SIGSTOP).
  bool is_stopped(int rank) const;
  // If the process of this rank is on this host and stopped (SIGSTOP), kills it and returns true.
  bool kill_if_stopped(int rank) const;
  // Returns the rank's number at the start of the run, which messages use.
  int number(int rank) const { return of(rank).started_as < 0 ? of(rank).number : of(rank).started_as; }
  std::vector<int> numbers_of(const std::vector<int>& ranks) const;
  // Returns ProcessPlace::number of all ranks; empty if unknown.
  const std::vector<int>& numbers() const { return numbers_; }
  // Return "rank 2", or "ranks 1 and 2 on h1, rank 4 on h2" if there are several nodes.
  std::string name(int rank) const { return list({rank}); }
  std::string list(const std::vector<int>& ranks) const;
  // Returns the hosts of the nodes on which all ranks are in `ranks`.
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
// Returns the place of a process of this machine, in the name space of process ids of this one.
ProcessPlace place_of(int process);
std::string encode(const ProcessPlace& place);
ProcessPlace decode_place(const std::string& text);

}  // namespace plexaura
