#include "backends/cpu/fast/attention/attention_blocks.h"

#include <numeric>

namespace plexaura::fast {

std::int64_t AttentionPlan::block_queries() const {
  // The scores of a block fit the second cache. Tiles of products have six rows. Few pairs of matrices are divided among
  // threads by their blocks.
  constexpr std::int64_t scores = std::int64_t{1} << 17;
  constexpr std::int64_t tile = 6;
  const std::int64_t most =
      std::clamp<std::int64_t>(scores / shape.keys / tile * tile, 12, shape.pairs < 8 ? 48 : 96);
  const std::int64_t count = (shape.queries + most - 1) / most;
  return ((shape.queries + count - 1) / count + tile - 1) / tile * tile;
}

AttentionShares::AttentionShares(const std::vector<double>& costs, double seconds) {
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  const auto shares = std::min<std::int64_t>(most_threads(), std::ssize(costs));
  double before = 0;
  for (std::int64_t unit = 0; unit < std::ssize(costs); ++unit) {
    if (before * static_cast<double>(shares) >= total * static_cast<double>(begins_.size()))
      begins_.push_back(unit);
    before += costs[static_cast<std::size_t>(unit)];
  }
  begins_.push_back(std::ssize(costs));
  nanoseconds_ = 1e9 * seconds / static_cast<double>(count());
}

}  // namespace plexaura::fast
