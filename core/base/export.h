#pragma once

// What the shared library plexaura_core shows to programs, plugins and users' own objects. All else stays
// hidden.
#define PLEXAURA_API __attribute__((visibility("default")))
