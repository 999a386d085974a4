#pragma once

#include <map>
#include <string>

#include "core/base/export.h"
#include "core/device/backend.h"
// Generated header: PLEXAURA_CONTRACT, a hash of the headers between engine and plugin.
#include "core/device/contract.h"

// The interface of a backend in a shared object, plexaura_<name>.so, which is opened at run time. The object
// links plexaura_core and exports the one function that PLEXAURA_PLUGIN defines. It stays loaded once it was
// opened.

namespace plexaura {

// The user's options of a backend, by name: {"lazy", "1"}. The backend defines names and values, and throws
// UserError for options that it does not know.
using BackendOptions = std::map<std::string, std::string, std::less<>>;

#define PLEXAURA_TEXT_OF_(x) #x
#define PLEXAURA_TEXT_OF(x) PLEXAURA_TEXT_OF_(x)

// The stamps of engine and plugin must be equal: both must be built by the same compiler from the same
// headers.
inline constexpr const char* plugin_stamp =
    "contract " PLEXAURA_CONTRACT ", compiler " __VERSION__ ", ABI " PLEXAURA_TEXT_OF(__GXX_ABI_VERSION)
#ifdef _GLIBCXX_USE_CXX11_ABI
        "." PLEXAURA_TEXT_OF(_GLIBCXX_USE_CXX11_ABI)
#endif
    ;

// The result of the function that a plugin exports. `stamp` must stay the first member, so that an engine of
// any build can read it before it trusts the other members.
struct PluginEntry {
  const char* stamp;
  Backend* (*open)(const BackendOptions& options);  // makes the backend, which the caller owns; may throw
};

inline constexpr const char* plugin_entry_name = "plexaura_plugin";

// Returns the folder of libplexaura_core.so, which also contains the plugins.
PLEXAURA_API std::string core_library_folder();

}  // namespace plexaura

// Defines the entry of a plugin; `open_function` makes its backend. Use it once in a shared object, outside
// namespaces.
#define PLEXAURA_PLUGIN(open_function)                                                   \
  extern "C" PLEXAURA_API const plexaura::PluginEntry* plexaura_plugin();                \
  const plexaura::PluginEntry* plexaura_plugin() {                                       \
    static constexpr plexaura::PluginEntry entry{plexaura::plugin_stamp, open_function}; \
    return &entry;                                                                       \
  }
