#include "core/host/inputs_read.h"

#include <algorithm>

namespace plexaura {

namespace {

bool looks_at(const Op& op, std::size_t input) {
  const std::vector<std::size_t> unread = op.traits().unread_inputs;
  return std::ranges::find(unread, input) == unread.end();
}

bool is_read(const RegionQuery& query, Value value) {
  return std::ranges::any_of(query.region.nodes, [&](NodeId node) {
    const NodeRecord& record = query.graph.record(node);
    for (std::size_t input = 0; input < record.inputs.size(); ++input)
      if (record.inputs[input] == value && looks_at(*record.op, input)) return true;
    return false;
  });
}

}  // namespace

std::vector<bool> inputs_read(const RegionQuery& query) {
  std::vector<bool> reads;
  for (const Value input : query.region.inputs) reads.push_back(is_read(query, input));
  return reads;
}

}  // namespace plexaura
