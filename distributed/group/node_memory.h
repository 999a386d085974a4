#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace plexaura {

// Bytes that the processes of this machine, or of the container that they run in, may have together: its
// memory, or less where a control group limits them.
std::size_t memory_of_node();

// The least memory limit of the control groups that hold a process, and of those that contain these.
// `groups`: the process's /proc/PID/cgroup; `root`: where version 2 of the groups, or the folder `memory` of
// version 1, is found. Nothing where there is no limit.
std::optional<std::size_t> limit_of_groups(const std::string& groups, const std::filesystem::path& root);

// Whether so many windows of this size fit into `memory` bytes, if nothing else is there.
bool fits(std::size_t bytes, std::size_t windows, std::size_t memory);

}  // namespace plexaura
