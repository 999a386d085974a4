#include "tests/support/sanitized.h"

#include <string_view>

namespace plexaura::testing {

constexpr std::string_view sanitizer = PLEXAURA_SANITIZE;
constinit const bool address_sanitized = sanitizer == "address";
constinit const bool sanitized = !sanitizer.empty();

}  // namespace plexaura::testing
