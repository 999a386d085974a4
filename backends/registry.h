#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/described_backend.h"
#include "core/device/plugin.h"

namespace plexaura {

// Opens a backend by name:
//   cpu       the processor, with the fastest kernels that this build has
//   portable  the processor, with the portable kernels only: slow; all other kernels are tested against them
//   <name>    the plugin plexaura_<name>.so, searched beside libplexaura_core.so and then in the folders of
//             PLEXAURA_PLUGIN_PATH (separated by colons); for example cuda, if it was built
// Options may follow the name, as in "cuda:device=1,tf32=1", or be passed in `options`. Throws UserError in
// one sentence if the name is unknown (the message lists the known ones), if the plugin is missing or was built from
// other headers or by another compiler, if a driver or device is missing, or if an option is unknown or given twice.
// Must not be called by two threads at once.
std::unique_ptr<Backend> open_backend(std::string_view name_with_options, BackendOptions options = {});

// Opens a backend for a device that need not be present, for example "h200" for the backend "cuda". Throws
// UserError like open_backend(), and also if the backend describes no devices or does not know this one.
std::unique_ptr<DescribedBackend> open_described_backend(std::string_view name_with_options,
                                                         const std::string& device);

// Returns the name without options: "cuda:device=1" -> "cuda".
std::string_view name_of_backend(std::string_view name_with_options);

// Returns the names that open_backend() can open here: the built-in ones and the plugins found.
std::vector<std::string> known_backends();

}  // namespace plexaura
