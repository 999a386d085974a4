#include "onnx/ops/table.h"

#include <map>

namespace plexaura::onnx {

namespace {

using Table = std::map<std::string_view, std::vector<Row>>;

const Table& table() {
  static const Table rows = [] {
    Table made;
    for (const auto family :
         {elementwise_rows(), shape_rows(), index_rows(), reduce_rows(), window_rows(), pool_rows(),
          norm_rows(), loss_rows(), resize_rows(), recurrent_rows(), quantised_rows(), update_rows(),
          control_flow_rows(), grid_rows(), signal_rows()})
      for (const Row& row : family) made[row.op].push_back(row);
    return made;
  }();
  return rows;
}

}  // namespace

const Row* find_row(std::string_view op, std::int64_t version) {
  const auto found = table().find(op);
  if (found == table().end()) return nullptr;
  const Row* best = nullptr;
  for (const Row& row : found->second)
    if (row.since <= version && (best == nullptr || row.since > best->since)) best = &row;
  return best;
}

}  // namespace plexaura::onnx
