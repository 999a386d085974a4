#pragma once

#include <cstddef>
#include <string_view>

namespace plexaura {

// Where the first byte stands that does not begin a character of UTF-8; the size of the text where all do.
std::size_t first_not_utf8(std::string_view text);

}  // namespace plexaura
