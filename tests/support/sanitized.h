#pragma once

namespace plexaura::testing {

// True with the address sanitizer, which makes code without optimisation twenty times slower.
extern const bool address_sanitized;

// True with any sanitizer that slows a program down. A few steps then test as much as whole trainings.
extern const bool sanitized;

}  // namespace plexaura::testing
