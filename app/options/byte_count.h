#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/config/config.h"

namespace plexaura {

inline constexpr std::string_view rule_of_bytes =
    "a number of bytes of 1 or more, which may have a unit, such as 2 GB, 500 MB or 1.5 GiB";

// Returns the number of bytes of a text such as "2 GB", "1.5GiB" or "4096"; nothing for any other text, and
// for a number that is below 1 or does not fit in 63 bits. kB, MB, GB and TB are powers of 1000; KiB, MiB,
// GiB and TiB are powers of 1024.
std::optional<std::int64_t> parse_byte_count(std::string_view text);

// Does the same for the value of a key. Throws UserError with the position of the key.
std::int64_t bytes_in(const Section& section, std::string_view key, const std::string& text);

}  // namespace plexaura
