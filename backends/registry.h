#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/backend.h"
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

// "cuda:device=1" -> "cuda"
std::string_view name_of_backend(std::string_view name_with_options);

// The names that open_backend() could open here: those built in, and the plugins found.
std::vector<std::string> known_backends();

}  // namespace plexaura
