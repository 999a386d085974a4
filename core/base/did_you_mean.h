#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// The known name that `name` was probably meant to be: one that differs in its case alone, or else the one fewest
// edits away (a letter added, removed, changed, or two neighbours exchanged), if that is at most a third of its letters;
// the first of equals. Empty where none is near.
PLEXAURA_API std::string nearest(std::string_view name, std::span<const std::string> known);

// "; did you mean 'learning_rate'?", or nothing where no known name is near.
PLEXAURA_API std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace plexaura
