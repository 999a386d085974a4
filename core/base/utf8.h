#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// Returns the number of bytes of the first UTF-8 character of `text`, or 0 if `text` does not begin with one.
// `text` must not be empty.
PLEXAURA_API std::size_t utf8_length(std::string_view text);

// Returns the index of the first byte that does not belong to a UTF-8 character, or the size of the text if
// all bytes do.
PLEXAURA_API std::size_t first_not_utf8(std::string_view text);

}  // namespace plexaura
