#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plexaura {

// Checks of the numbers of a table, row by row: `values` has a number for each row and column, and NaN for a missing
// cell. They throw UserError that names the file and the column.

// Throws for a column in which each cell is missing.
void check_has_numbers(const std::string& file, const std::vector<double>& values,
                       const std::vector<std::string>& names);

// Makes all numbers of a column equal if they differ only by the rounding of some operations in float64, as
// 0.3 and 0.1 + 0.2 do. Otherwise float32 might round them to two values, and standardising would make a
// feature of the noise.
void level_noise(std::vector<double>& values, std::size_t columns);

// Throws for a column whose numbers are large and differ by little, such as times in seconds since 1970,
// because float32 would make them equal.
void check_precision(const std::string& file, const std::vector<double>& values,
                     const std::vector<std::string>& names);

}  // namespace plexaura
