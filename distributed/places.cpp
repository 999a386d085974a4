#include "distributed/places.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace plexaura {

ProcessPlace this_place() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  struct stat space {};
  const bool known = stat("/proc/self/ns/pid", &space) == 0;
  return {host.data(), static_cast<int>(getpid()), known ? std::to_string(space.st_ino) : "unknown"};
}

std::string encode(const ProcessPlace& place) {
  return fmt::format("{}\n{}\n{}\n", place.host, place.process, place.process_space);
}

ProcessPlace decode_place(const std::string& text) {
  ProcessPlace place;
  std::istringstream lines(text);
  std::string process;
  std::getline(lines, place.host);
  std::getline(lines, process);
  std::getline(lines, place.process_space);
  place.process = std::stoi(process);
  return place;
}

Places::Places(std::vector<ProcessPlace> places, int own_rank)
    : places_(std::move(places)), own_rank_(own_rank) {
  for (int rank = 0; rank < ranks(); ++rank) {
    std::size_t node = 0;
    while (node < nodes_.size() && of(nodes_[node].front()).host != of(rank).host) ++node;
    if (node == nodes_.size()) nodes_.emplace_back();
    nodes_[node].push_back(rank);
    if (rank != own_rank_) continue;
    own_node_ = static_cast<int>(node);
    own_node_rank_ = static_cast<int>(nodes_[node].size()) - 1;
  }
}

bool Places::is_dead(int rank) const {
  const ProcessPlace& mine = of(own_rank_);
  const ProcessPlace& other = of(rank);
  if (other.host != mine.host || other.process_space != mine.process_space || mine.process_space == "unknown")
    return false;
  return kill(other.process, 0) != 0 && errno == ESRCH;
}

std::string Places::name(int rank) const {
  return nodes() == 1 ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, of(rank).host);
}

}  // namespace plexaura
