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
//   portable  the processor, with the portable kernels alone: slow, and the measure of all others
//   <name>    the plugin plexaura_<name>.so, looked for beside libplexaura_core.so and then in the folders of
//             PLEXAURA_PLUGIN_PATH (separated by colons): cuda, where it was built
// Options may stand behind the name, "cuda:device=1,tf32=1", or beside it.
// Throws UserError in one sentence: an unknown name (with the known ones), a plugin that is missing or was
// built against other headers, a driver or device that is missing, an option that is unknown or given twice. Registers
// the portable kernels first. From one thread at a time.
std::unique_ptr<Backend> open_backend(std::string_view name_with_options, BackendOptions options = {});

// The same for a device that need not be there, as "h200" with the backend "cuda". UserError in one sentence also where the
// backend describes no devices, and for a device that it does not know.
std::unique_ptr<DescribedBackend> open_described_backend(std::string_view name_with_options,
                                                         const std::string& device);

// "cuda:device=1" -> "cuda"
std::string_view name_of_backend(std::string_view name_with_options);

// The names that open_backend() could open here: those built in, and the plugins found.
std::vector<std::string> known_backends();

}  // namespace plexaura
