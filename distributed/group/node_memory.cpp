#include "distributed/group/node_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <unistd.h>

namespace plexaura {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// A file that is not there or holds a word sets no limit.
std::size_t limit_in(const std::filesystem::path& file) {
  std::size_t bytes = 0;
  std::ifstream stream(file);
  return stream >> bytes ? bytes : unlimited;
}

std::size_t least_limit(const std::filesystem::path& root, std::filesystem::path group, const char* file) {
  std::size_t least = limit_in(root / file);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path()) {
    least = std::min(least, limit_in(root / group / file));
  }
  return least;
}

}  // namespace

std::size_t memory_of_node() {
  const auto machine =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::ostringstream groups;
  groups << std::ifstream("/proc/self/cgroup").rdbuf();
  return std::min(machine, limit_of_groups(groups.str(), "/sys/fs/cgroup").value_or(machine));
}

// Lines are "0::/the/group" in version 2, and "5:cpu,memory:/the/group" in version 1.
std::optional<std::size_t> limit_of_groups(const std::string& groups, const std::filesystem::path& root) {
  std::size_t least = unlimited;
  std::istringstream lines(groups);
  std::string number;
  std::string controllers;
  std::string group;
  while (std::getline(lines, number, ':') && std::getline(lines, controllers, ':') &&
         std::getline(lines, group)) {
    if (controllers.empty()) least = std::min(least, least_limit(root, group, "memory.max"));
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      least = std::min(least, least_limit(root / "memory", group, "memory.limit_in_bytes"));
  }
  if (least == unlimited) return std::nullopt;
  return least;
}

bool fits(std::size_t bytes, std::size_t windows, std::size_t memory) { return bytes <= memory / windows; }

}  // namespace plexaura
