#include "training/data/tables/csv_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <limits>

#include "core/base/error.h"
#include "training/data/tables/csv_cells.h"

namespace plexaura {

namespace {

struct Spread {
  double least = 0;
  double most = 0;

  double largest() const { return std::max(std::abs(least), std::abs(most)); }
};

// Ignores NaN, which stands for a missing cell.
Spread spread_of(const std::vector<double>& values, std::size_t column, std::size_t columns) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Spread spread{infinity, -infinity};
  for (std::size_t i = column; i < values.size(); i += columns) {
    if (std::isnan(values[i])) continue;
    spread.least = std::min(spread.least, values[i]);
    spread.most = std::max(spread.most, values[i]);
  }
  return spread;
}

}  // namespace

void check_has_numbers(const std::string& file, const std::vector<double>& values,
                       const std::vector<std::string>& names) {
  for (std::size_t column = 0; column < names.size(); ++column)
    if (std::isinf(spread_of(values, column, names.size()).least))
      throw UserError(
          fmt::format("{}: no row has a number in {}; remove the column", file, shortened(names[column])));
}

void level_noise(std::vector<double>& values, std::size_t columns) {
  constexpr double noise = 64 * std::numeric_limits<double>::epsilon();
  for (std::size_t column = 0; column < columns; ++column) {
    const Spread spread = spread_of(values, column, columns);
    if (spread.most - spread.least > noise * spread.largest()) continue;
    for (std::size_t i = column; i < values.size(); i += columns)
      if (!std::isnan(values[i])) values[i] = spread.least;
  }
}

void check_precision(const std::string& file, const std::vector<double>& values,
                     const std::vector<std::string>& names) {
  constexpr double largest_share = 0.01;
  for (std::size_t column = 0; column < names.size(); ++column) {
    const Spread spread = spread_of(values, column, names.size());
    const double width = spread.most - spread.least;
    double rounding = 0;
    for (std::size_t i = column; i < values.size(); i += names.size())
      rounding = std::max(rounding, std::abs(values[i] - static_cast<double>(static_cast<float>(values[i]))));
    // Smaller numbers count as 0 anyway.
    const bool is_normal = spread.largest() >= std::numeric_limits<float>::min();
    if (is_normal && width > 0 && rounding > largest_share * width)
      throw UserError(
          fmt::format("{}: the numbers of {} lie between {} and {}, and float32 rounds them by up to {:.2g}; "
                      "remove the column if its numbers are meant to be equal, or subtract a number from all "
                      "of them",
                      file, shortened(names[column]), spread.least, spread.most, rounding));
  }
}

}  // namespace plexaura
