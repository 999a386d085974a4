#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plexaura {

// The candidate that `word` was probably meant to be: the one fewest edits away (a letter added, removed,
// changed, or two neighbours exchanged), if that is at most a third of its letters. For "did you mean".
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace plexaura
