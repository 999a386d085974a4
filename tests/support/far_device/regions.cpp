#include "tests/support/far_device/regions.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace plexaura::far_device {

namespace {

constexpr std::array producers = std::to_array<std::string_view>({"mul", "matmul", "conv2d_input_grad"});

bool is_producer(const Graph& graph, Value value) {
  const NodeRecord& record = graph.record(value.node);
  return record.types.size() == 1 && std::ranges::find(producers, record.op->name()) != producers.end();
}

}  // namespace

std::vector<Region> match_sums(const Graph& graph, NodeId last, const Uses& uses) {
  std::vector<Region> regions;
  const NodeRecord& sum = graph.record(last);
  if (sum.op->name() != "add" || sum.inputs[0] == sum.inputs[1]) return regions;
  for (std::size_t i = 0; i < 2; ++i) {
    const Value product = sum.inputs[i];
    if (!is_producer(graph, product) || !uses.only_read_by(product, last)) continue;
    const NodeRecord& producer = graph.record(product.node);
    Region region{
        std::string(producer.op->name()) + "+add", {product.node, last}, producer.inputs, {{last, 0}}};
    region.inputs.push_back(sum.inputs[1 - i]);
    regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace plexaura::far_device
