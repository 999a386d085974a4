#include "distributed/wire/topology.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "core/base/process_state.h"
#include "distributed/wire/failure.h"

namespace plexaura {
namespace {

bool is_one_node(const ProcessPlace& a, const ProcessPlace& b) {
  return a.host == b.host && a.machine == b.machine;
}

}  // namespace

ProcessPlace this_place() { return place_of(getpid()); }

ProcessPlace place_of(int process) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  struct stat space {};
  const bool known = stat("/proc/self/ns/pid", &space) == 0;
  std::string machine;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), machine);
  ProcessPlace place{host.data(), process, known ? std::to_string(space.st_ino) : "unknown", machine};
  place.process_start = process_state(process).start;
  return place;
}

std::string encode(const ProcessPlace& place) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n", place.host, place.process, place.process_start,
                     place.process_space, place.machine, place.number, place.started_as);
}

ProcessPlace decode_place(const std::string& text) {
  ProcessPlace place;
  std::istringstream lines(text);
  std::string process;
  std::string number;
  std::getline(lines, place.host);
  std::getline(lines, process);
  std::string process_start;
  std::getline(lines, process_start);
  std::getline(lines, place.process_space);
  std::getline(lines, place.machine);
  std::getline(lines, number);
  std::string started_as;
  std::getline(lines, started_as);
  place.process = std::stoi(process);
  place.process_start = std::stoll(process_start);
  place.number = std::stoi(number);
  place.started_as = std::stoi(started_as);
  return place;
}

Topology::Topology(std::vector<ProcessPlace> places, int own_rank)
    : places_(std::move(places)), own_rank_(own_rank) {
  for (const ProcessPlace& place : places_)
    if (place.number >= 0) numbers_.push_back(place.number);
  for (int rank = 0; rank < ranks(); ++rank) {
    std::size_t node = 0;
    while (node < nodes_.size() && !is_one_node(of(nodes_[node].front()), of(rank))) ++node;
    if (node == nodes_.size()) nodes_.emplace_back();
    nodes_[node].push_back(rank);
    if (rank != own_rank_) continue;
    own_node_ = static_cast<int>(node);
    own_node_rank_ = static_cast<int>(nodes_[node].size()) - 1;
  }
}

bool Topology::sees_process_of(int rank) const {
  const ProcessPlace& mine = of(own_rank_);
  const ProcessPlace& other = of(rank);
  return is_one_node(mine, other) && other.process_space == mine.process_space &&
         mine.process_space != "unknown";
}

bool Topology::has_no_process(int rank) const {
  return sees_process_of(rank) && kill(of(rank).process, 0) != 0 && errno == ESRCH;
}

bool Topology::is_dead(int rank) const {
  if (!sees_process_of(rank)) return false;
  if (has_no_process(rank)) return true;
  const std::int64_t known = of(rank).process_start;
  const std::int64_t start = process_state(of(rank).process).start;
  return known > 0 && start > 0 && start != known;
}

// True if the process is stopped. Compares the start time too, because another process may have this id by
// now.
bool Topology::is_stopped(int rank) const {
  if (!sees_process_of(rank)) return false;
  const ProcessState state = process_state(of(rank).process);
  return state.letter == 'T' && state.start == of(rank).process_start;
}

bool Topology::kill_if_stopped(int rank) const {
  return is_stopped(rank) && kill(of(rank).process, SIGKILL) == 0;
}

std::vector<int> Topology::numbers_of(const std::vector<int>& ranks) const {
  std::vector<int> numbers;
  for (const int rank : ranks) numbers.push_back(number(rank));
  return numbers;
}

std::string Topology::list(const std::vector<int>& ranks) const {
  std::string text;
  for (const std::vector<int>& node : nodes_) {
    std::vector<int> here;
    std::ranges::copy_if(node, std::back_inserter(here),
                         [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); });
    if (here.empty()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", list_ranks(numbers_of(here)));
    if (nodes() > 1) text += " on " + of(node.front()).host;
  }
  return text;
}

std::vector<std::string> Topology::hosts_without(const std::vector<int>& ranks) const {
  const auto is_listed = [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); };
  std::vector<std::string> hosts;
  for (const std::vector<int>& node : nodes_) {
    if (std::ranges::all_of(node, is_listed)) hosts.push_back(of(node.front()).host);
  }
  return hosts;
}

}  // namespace plexaura
