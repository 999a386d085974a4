#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// Returns the known name that `name` was probably meant to be: one that differs only in its case or, if there
// is none, the one with the fewest edits (a letter added, removed or changed, or two neighbours exchanged).
// More than one edit is allowed only if the edits are at most a third of the known name's letters. Returns
// the first name if several are equally near, and an empty string if none is near.
PLEXAURA_API std::string nearest(std::string_view name, std::span<const std::string> known);

// Returns "; did you mean 'learning_rate'?", or an empty string if no known name is near.
PLEXAURA_API std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace plexaura
