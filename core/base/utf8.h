#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// Returns the number of bytes of the first character of `text`, which must not be empty; 0 if they are not
// UTF-8.
PLEXAURA_API std::size_t utf8_length(std::string_view text);

// Returns the index of the first byte that does not belong to a character of UTF-8, or the size of the text
// if all do.
PLEXAURA_API std::size_t first_not_utf8(std::string_view text);

}  // namespace plexaura
