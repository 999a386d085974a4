#pragma once

namespace plexaura::testing {

// True with the address sanitizer, which makes code without optimisation twenty times slower.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif

// True with any sanitizer that slows a program down. A few steps then test as much as whole trainings.
#ifdef __SANITIZE_THREAD__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = address_sanitized;
#endif

}  // namespace plexaura::testing
