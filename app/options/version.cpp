#include "app/options/version.h"

#include <fmt/format.h>

#include "backends/cpu/cpu_backend.h"
#include "core/device/backend.h"
#include "distributed/communicator/communicator.h"
#include "distributed/seal/seal.h"

namespace plexaura {

namespace {

// Returns a text such as "0.1.0 (0f2a4b6c8d9e, Release, g++ 12.2.0)".
std::string sources_and_compiler() {
  const std::string revision = source_revision();
  return fmt::format("{} ({}{}, g++ {})", PLEXAURA_VERSION, revision.empty() ? "" : revision + ", ",
                     PLEXAURA_BUILD_TYPE, __VERSION__);
}

}  // namespace

std::string version_text() {
  return fmt::format("Plexaura {}\n{}\n{}\n{}", sources_and_compiler(),
                     make_cpu_backend()->info().description, message_passing_library(), sealing_library());
}

std::string build_id() {
  return fmt::format("{}, {}, {}", sources_and_compiler(), cpu_libraries(), message_passing_library());
}

}  // namespace plexaura
