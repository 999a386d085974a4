#include "training/data/tables/csv_cells.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>
#include <string_view>

namespace plexaura {

namespace {

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 60;
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  // Moves to the beginning of a UTF-8 character.
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) first.push_back(shortened(names[i]));
  const std::string rest = names.size() > most ? fmt::format(" and {} more", names.size() - most) : "";
  return fmt::format("{}{}", fmt::join(first, ", "), rest);
}

std::vector<std::string> sorted_names(const std::set<std::string>& found) {
  std::vector<std::string> names(found.begin(), found.end());
  if (std::ranges::all_of(names, [](const std::string& name) { return whole_number(name).has_value(); }))
    std::ranges::stable_sort(names, {}, [](const std::string& name) { return *whole_number(name); });
  return names;
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
