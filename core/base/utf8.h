#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// How many bytes the character has that begins this text, which is not empty; 0 where they are no UTF-8.
PLEXAURA_API std::size_t utf8_length(std::string_view text);

// Where the first byte stands that does not begin a character of UTF-8; the size of the text where all do.
PLEXAURA_API std::size_t first_not_utf8(std::string_view text);

}  // namespace plexaura
