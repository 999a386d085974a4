#pragma once

namespace plexaura::testing {

// Whether the address sanitizer watches, under which code without optimisation takes twenty times as long.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif

// Whether any sanitizer watches that slows a program down. A few steps show it as much as whole trainings do.
#ifdef __SANITIZE_THREAD__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = address_sanitized;
#endif

}  // namespace plexaura::testing
