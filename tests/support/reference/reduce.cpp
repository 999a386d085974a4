#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

namespace {

bool has_nan(const std::vector<double>& values) {
  return std::ranges::any_of(values, [](double value) { return std::isnan(value); });
}

// Returns true if the axis is reduced.
bool reduces(const ReduceOptions& options, std::int64_t axis, std::int64_t rank) {
  return options.axes.empty() ||
         std::ranges::any_of(options.axes, [&](std::int64_t of) { return of == axis || of + rank == axis; });
}

}  // namespace

Tensor reduce(const Tensor& x, const ReduceOptions& options, double (*of)(const std::vector<double>&)) {
  const std::int64_t rank = x.shape().rank();
  // Returns the remaining index or extents. A reduced axis that is kept has the index 0 or the extent 1.
  const auto kept = [&](const Index& from, std::int64_t reduced) {
    Index left;
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      if (!reduces(options, axis, rank))
        left.push_back(from[static_cast<std::size_t>(axis)]);
      else if (options.keepdims)
        left.push_back(reduced);
    }
    return left;
  };
  std::map<Index, std::vector<double>> together;
  for_each_index(x.shape(), [&](const Index& index) { together[kept(index, 0)].push_back(at(x, index)); });
  Tensor y = zeros(Shape(kept(x.shape().extents(), 1)));
  for_each_index(y.shape(), [&](const Index& index) { at(y, index) = of(together[index]); });
  return y;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double mean(const std::vector<double>& values) { return sum(values) / static_cast<double>(values.size()); }

double largest(const std::vector<double>& values) {
  return has_nan(values) ? std::nan("") : *std::ranges::max_element(values);
}

double smallest(const std::vector<double>& values) {
  return has_nan(values) ? std::nan("") : *std::ranges::min_element(values);
}

double place_of_largest(const std::vector<double>& values) {
  return static_cast<double>(std::ranges::max_element(values) - values.begin());
}

}  // namespace plexaura::testing::reference
