#include "backends/cpu/adapter/inputs_read.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace plexaura {

namespace {

struct Unread {
  std::string_view op;
  std::size_t input;
};

// The one list: inputs that an op names for its gradient alone.
constexpr std::array unread = std::to_array<Unread>({{"softmax_cross_entropy_grad", 0}});

bool looks_at(std::string_view op, std::size_t input) {
  return std::ranges::none_of(unread,
                              [&](const Unread& entry) { return entry.op == op && entry.input == input; });
}

bool is_read(const RegionQuery& query, Value value) {
  return std::ranges::any_of(query.region.nodes, [&](NodeId node) {
    const NodeRecord& record = query.graph.record(node);
    for (std::size_t input = 0; input < record.inputs.size(); ++input)
      if (record.inputs[input] == value && looks_at(record.op->name(), input)) return true;
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
