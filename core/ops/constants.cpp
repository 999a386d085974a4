#include "core/ops/constants.h"

#include <fmt/format.h>
#include <numeric>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

void require_extent(const Graph& graph, std::string_view builder, std::int64_t extent,
                    std::source_location where) {
  if (extent < 0)
    throw UserError(fmt::format("{}: {}: an extent must be 0 or more, not {}",
                                to_string(graph.origin_of(where)), builder, extent));
}

Tensor counted(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Tensor::of<std::int64_t>({count}, numbers);
}

}  // namespace

Node iota(Graph& graph, std::int64_t count, DType dtype, std::source_location where) {
  require_extent(graph, "iota", count, where);
  const Tensor numbers = counted(count);
  const Tensor converted = numbers.cast(dtype);
  if (converted.cast(DType::int64) != numbers)
    throw UserError(fmt::format("{}: iota: {} cannot hold all whole numbers below {}; choose a wider dtype",
                                to_string(graph.origin_of(where)), name_of(dtype), count));
  return graph.constant(converted, where);
}

Node eye(Graph& graph, std::int64_t rows, std::int64_t columns, DType dtype, std::source_location where) {
  require_extent(graph, "eye", std::min(rows, columns), where);
  const Node row = reshape({iota(graph, rows, DType::int64, where), where}, {rows, 1});
  const Node is_diagonal = eq({row, where}, {iota(graph, columns, DType::int64, where), where});
  return cast({is_diagonal, where}, dtype);
}

}  // namespace plexaura
