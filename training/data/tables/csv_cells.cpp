#include "training/data/tables/csv_cells.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

namespace plexaura {

std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 60;
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  // Moves to the beginning of a UTF-8 character.
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::errc parse_number(const std::string& text, double& value) {
  const bool has_plus = text.starts_with('+') && !text.starts_with("+-");  // from_chars accepts no plus sign
  const char* last = text.data() + text.size();
  const auto result = std::from_chars(text.data() + (has_plus ? 1 : 0), last, value);
  const bool is_whole = result.ptr == last && std::isfinite(value);
  if (result.ec == std::errc{} && !is_whole) return std::errc::invalid_argument;
  // Compares in double, because whether a float is 0 depends on this thread's handling of denormals.
  constexpr double rounds_to_none = static_cast<double>(std::numeric_limits<float>::denorm_min()) / 2;
  const bool fits = value == 0 || (std::abs(value) <= std::numeric_limits<float>::max() &&
                                   std::abs(value) > rounds_to_none);
  return result.ec == std::errc{} && !fits ? std::errc::result_out_of_range : result.ec;
}

bool is_number(const std::string& text) {
  double ignored = 0;
  return parse_number(text, ignored) == std::errc{};
}

// The words for a missing value in pandas, R, SQL, spreadsheets and Weka.
bool means_missing(const std::string& label) {
  constexpr std::array<std::string_view, 22> words{
      "NA",   "N/A",  "n/a",  "na",   "<NA>", "#NA",  "#N/A", "#N/A N/A", "NaN",     "nan",      "NAN",
      "-nan", "-NaN", "None", "none", "NONE", "null", "NULL", "Null",     "1.#QNAN", "-1.#QNAN", "?"};
  return std::ranges::find(words, label) != words.end();
}

}  // namespace plexaura
