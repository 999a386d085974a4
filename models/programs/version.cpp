#include "models/programs/version.h"

#include <fmt/format.h>

#include "backends/cpu/cpu_backend.h"
#include "core/device/backend.h"
#include "distributed/communicator.h"

namespace plexaura {

std::string version_text() {
  return fmt::format("Plexaura {} ({}, g++ {})\n{}\n{}", PLEXAURA_VERSION, PLEXAURA_BUILD_TYPE, __VERSION__,
                     make_cpu_backend()->info().description, message_passing_library());
}

std::string build_id() { return fmt::format("{} {} {}", PLEXAURA_VERSION, PLEXAURA_BUILD_TYPE, __VERSION__); }

}  // namespace plexaura
