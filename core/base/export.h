#pragma once

// Exports a name of the shared library plexaura_core to programs, plugins and users' own objects. All other
// names are hidden.
#define PLEXAURA_API __attribute__((visibility("default")))
