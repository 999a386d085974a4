#include "app/options/byte_count.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace plexaura {

std::optional<std::int64_t> parse_byte_count(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 10> units{{{"", 1},
                                                                              {"B", 1},
                                                                              {"kB", 1e3},
                                                                              {"MB", 1e6},
                                                                              {"GB", 1e9},
                                                                              {"TB", 1e12},
                                                                              {"KiB", 0x1p10},
                                                                              {"MiB", 0x1p20},
                                                                              {"GiB", 0x1p30},
                                                                              {"TiB", 0x1p40}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto* const found = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
  if (found == units.end()) return std::nullopt;
  const double bytes = std::floor(number * found->second);
  if (!(bytes >= 1 && bytes < 0x1p63)) return std::nullopt;
  return static_cast<std::int64_t>(bytes);
}

std::int64_t bytes_in(const Section& section, std::string_view key, const std::string& text) {
  const std::optional<std::int64_t> bytes = parse_byte_count(text);
  if (!bytes) throw section.error(key, fmt::format("is '{}'; it must be {}", text, rule_of_bytes));
  return *bytes;
}

}  // namespace plexaura
