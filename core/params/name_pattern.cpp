#include "core/params/name_pattern.h"

#include <algorithm>

namespace plexaura {

// After a mismatch, the last star takes one letter more, and the comparison continues from there.
bool is_named_like(std::string_view name, std::string_view pattern) {
  std::size_t letter = 0;
  std::size_t at = 0;
  std::size_t star = std::string_view::npos;
  std::size_t behind_star = 0;  // index of the first letter after the star that the star does not take
  while (letter < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      behind_star = letter;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[letter])) {
      ++at;
      ++letter;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      letter = ++behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

bool is_named_like(const ParameterSpec& spec, std::string_view pattern) {
  return is_named_like(spec.name, pattern) ||
         std::ranges::any_of(spec.aliases,
                             [&](const std::string& alias) { return is_named_like(alias, pattern); });
}

}  // namespace plexaura
