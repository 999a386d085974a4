#include "models/config/rules.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plexaura {

std::string rule_of(std::string_view what, const IntegerRange& range) {
  constexpr IntegerRange all;
  std::vector<std::string> bounds;
  if (range.minimum != all.minimum) bounds.push_back(fmt::format(">= {}", range.minimum));
  if (range.maximum != all.maximum) bounds.push_back(fmt::format("<= {}", range.maximum));
  return fmt::format("{}{}{}", what, bounds.empty() ? "" : " ", fmt::join(bounds, " and "));
}

std::string rule_of(std::string_view what, const NumberRange& range) {
  std::vector<std::string> bounds;
  if (std::isfinite(range.minimum)) bounds.push_back(fmt::format(">= {}", range.minimum));
  if (std::isfinite(range.above)) bounds.push_back(fmt::format("> {}", range.above));
  if (std::isfinite(range.maximum)) bounds.push_back(fmt::format("<= {}", range.maximum));
  if (std::isfinite(range.below)) bounds.push_back(fmt::format("< {}", range.below));
  return fmt::format("{}{}{}", what, bounds.empty() ? "" : " ", fmt::join(bounds, " and "));
}

std::string joined_with_or(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string to_yaml(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      quoted += c;
  }
  return quoted + '"';
}
std::string to_yaml(bool value) { return value ? "true" : "false"; }
std::string to_yaml(std::int64_t value) { return fmt::format("{}", value); }
std::string to_yaml(double value) { return fmt::format("{}", value); }
std::string to_yaml(const std::vector<std::string>& values) {
  std::vector<std::string> quoted;
  for (const std::string& value : values) quoted.push_back(to_yaml(value));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}
std::string to_yaml(const std::vector<std::int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}
std::string to_yaml(const std::vector<double>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

}  // namespace plexaura
