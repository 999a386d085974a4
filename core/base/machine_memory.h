#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/export.h"

namespace plexaura {

// Returns the bytes of memory that all processes of this machine or container may use together: the memory of
// the machine, or the limit of a control group if that is smaller. Returns the largest number if the system
// does not report it.
PLEXAURA_API std::size_t machine_memory();

// Returns the free bytes of the machine, swap included, or those that control groups leave if these are fewer.
PLEXAURA_API std::size_t available_memory();

// The memory limits of the control groups of a process, and of the groups that contain them.
struct GroupMemory {
  std::optional<std::size_t> limit;  // the smallest limit; empty if there is none
  // The smallest difference between a limit and its use, in bytes; cached pages of files count as free.
  std::optional<std::size_t> available;
};

// Reads the limits. `groups` is the text of the process's /proc/PID/cgroup. `root` is the folder of version 2 of the
// control groups, or the folder that contains the folder `memory` of version 1.
PLEXAURA_API GroupMemory memory_of_groups(const std::string& groups, const std::filesystem::path& root);

}  // namespace plexaura
