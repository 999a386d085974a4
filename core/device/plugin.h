#pragma once

#include <map>
#include <string>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/device/contract.h"  // generated: PLEXAURA_CONTRACT, a hash of the headers between engine and plugin

// How a backend in a shared object of its own is opened at run time. The object is plexaura_<name>.so; it
// links plexaura_core, exports the one function below (by PLEXAURA_PLUGIN), and stays loaded once it was
// opened.

namespace plexaura {

// What the user says about a backend, by name: {"lazy", "1"}. Names and values are the backend's own; it
// throws UserError for one that it does not know.
using BackendOptions = std::map<std::string, std::string, std::less<>>;

#define PLEXAURA_TEXT_OF_(x) #x
#define PLEXAURA_TEXT_OF(x) PLEXAURA_TEXT_OF_(x)

// By what engine and plugin recognise each other: they must have been built by the same compiler from the
// same headers.
inline constexpr const char* plugin_stamp =
    "contract " PLEXAURA_CONTRACT ", compiler " __VERSION__ ", ABI " PLEXAURA_TEXT_OF(__GXX_ABI_VERSION)
#ifdef _GLIBCXX_USE_CXX11_ABI
        "." PLEXAURA_TEXT_OF(_GLIBCXX_USE_CXX11_ABI)
#endif
    ;

// What a plugin shows. Plain C, because it is read before the stamps were compared.
struct PluginEntry {
  const char* stamp;
  Backend* (*open)(const BackendOptions& options);  // owned by the caller; throws
};

inline constexpr const char* plugin_entry_name = "plexaura_plugin";

// The folder of libplexaura_core.so, where plugins lie.
PLEXAURA_API std::string core_library_folder();

}  // namespace plexaura

// The entry of a plugin whose backend is made by `open_function`; once in an object, outside namespaces.
#define PLEXAURA_PLUGIN(open_function)                                                   \
  extern "C" PLEXAURA_API const plexaura::PluginEntry* plexaura_plugin();                \
  const plexaura::PluginEntry* plexaura_plugin() {                                       \
    static constexpr plexaura::PluginEntry entry{plexaura::plugin_stamp, open_function}; \
    return &entry;                                                                       \
  }
