#include "tests/support/simulated_cuda/captured_graph.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura::cuda::simulation {

void Bytes::unite() {
  std::ranges::sort(pieces_);
  std::vector<std::pair<const std::byte*, const std::byte*>> united;
  for (const auto& piece : pieces_)
    if (!united.empty() && piece.first <= united.back().second)
      united.back().second = std::max(united.back().second, piece.second);
    else
      united.push_back(piece);
  pieces_ = std::move(united);
}

bool Bytes::meets(const Bytes& other) const {
  auto a = pieces_.begin();
  auto b = other.pieces_.begin();
  while (a != pieces_.end() && b != other.pieces_.end()) {
    if (a->first < b->second && b->first < a->second) return true;
    if (a->second < b->second)
      ++a;
    else
      ++b;
  }
  return false;
}

CapturedGraph::CapturedGraph(std::vector<GraphNode> nodes)
    : nodes_(std::move(nodes)),
      before_(nodes_.size(), std::vector<bool>(nodes_.size())),
      ends_(nodes_.size()),
      ordered_(nodes_.size()) {
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    for (const std::size_t first : nodes_[node].behind) {
      before_[node][first] = true;
      for (std::size_t other = 0; other < first; ++other)
        if (before_[first][other]) before_[node][other] = true;
      ends_[node] = std::max(ends_[node], ends_[first]);
    }
    if (nodes_[node].run) ++ends_[node];
  }
  for (const bool forked : {false, true})
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      if (nodes_[node].forked == forked) append(node);
}

void CapturedGraph::append(std::size_t node) {
  if (ordered_[node]) return;
  for (std::size_t first = 0; first < node; ++first)
    if (before_[node][first]) append(first);
  ordered_[node] = true;
  order_.push_back(node);
}

bool CapturedGraph::forks() const { return std::ranges::any_of(nodes_, &GraphNode::forked); }

double CapturedGraph::length() const { return ends_.empty() ? 0 : *std::ranges::max_element(ends_); }

void CapturedGraph::check_races(std::vector<UsedBytes> used) const {
  for (UsedBytes& bytes : used) {
    bytes.read.unite();
    bytes.written.unite();
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node)
    for (std::size_t other = 0; other < node; ++other) {
      if (comes_behind(node, other)) continue;
      if (used[node].written.meets(used[other].written) || used[node].written.meets(used[other].read) ||
          used[node].read.meets(used[other].written))
        throw InternalError(fmt::format("{} and {} race for memory: nothing in the graph orders them",
                                        nodes_[other].name, nodes_[node].name));
    }
}

void Capturing::add(runtime::Stream* stream, GraphNode node) {
  Ends& ends = ends_.at(stream);
  node.forked = stream != origin_;
  node.behind = std::exchange(ends, {nodes_.size()});
  nodes_.push_back(std::move(node));
}

bool Capturing::hold(runtime::Stream* stream, const EventHandle& event) {
  const auto mark = marks_.find(event);
  if (mark == marks_.end()) return false;
  Ends& ends = ends_[stream];
  for (const std::size_t end : mark->second)
    if (std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
  return true;
}

CapturedGraph Capturing::end() {
  CapturedGraph graph(std::move(nodes_));
  const Ends& joined = ends_.at(origin_);
  const auto is_joined = [&](std::size_t node) {
    return std::ranges::any_of(joined,
                               [&](std::size_t end) { return end == node || graph.comes_behind(end, node); });
  };
  for (const auto& [stream, ends] : ends_)
    if (!std::ranges::all_of(ends, is_joined))
      throw InternalError(
          "CUDA: cudaErrorStreamCaptureUnjoined: a stream was not joined to the one that is captured");
  return graph;
}

}  // namespace plexaura::cuda::simulation
