#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/export.h"

namespace plexaura {

// Bytes that all processes of this machine, or of the container that they run in, may have together: its memory, or
// less where a control group limits them. The largest number where the system does not say.
PLEXAURA_API std::size_t machine_memory();

// Of these, what this process could still be given, swap included, without any process being killed for it.
PLEXAURA_API std::size_t available_memory();

// Of the control groups that hold a process, and of those that contain these.
struct GroupMemory {
  std::optional<std::size_t> limit;      // the least limit; nothing where there is none
  std::optional<std::size_t> available;  // the least that a limit leaves; pages of files count as free
};

// `groups`: the process's /proc/PID/cgroup; `root`: where version 2 of the groups, or the folder `memory` of
// version 1, is found.
PLEXAURA_API GroupMemory memory_of_groups(const std::string& groups, const std::filesystem::path& root);

}  // namespace plexaura
