#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/export.h"

namespace plexaura {

// Returns the bytes of memory that all processes of this machine, or of their container, may use together:
// all of its memory, or less if a control group limits it. Returns the largest number if the system does not
// report it.
PLEXAURA_API std::size_t machine_memory();

// Returns how many of these bytes this process can still get, swap included, before the system kills a
// process.
PLEXAURA_API std::size_t available_memory();

// The memory limits of the control groups of a process, and of the groups around these.
struct GroupMemory {
  std::optional<std::size_t> limit;      // the smallest limit; empty if there is none
  std::optional<std::size_t> available;  // the least that a limit leaves; pages of files count as free
};

// `groups` is the text of the process's /proc/PID/cgroup. `root` is the folder of version 2 of the control
// groups, or the folder `memory` of version 1.
PLEXAURA_API GroupMemory memory_of_groups(const std::string& groups, const std::filesystem::path& root);

}  // namespace plexaura
