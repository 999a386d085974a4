#pragma once

namespace plexaura::testing {

// Whether the address sanitizer watches, under which code without optimisation takes twenty times as long.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif

}  // namespace plexaura::testing
