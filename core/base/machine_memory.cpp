#include "core/base/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <string_view>

namespace plexaura {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

// The names of a control group's files, and the entries of memory.stat that count pages of files.
struct GroupFiles {
  const char* limit;
  const char* usage;
  std::string_view inactive_files;
  std::string_view active_files;
};

constexpr GroupFiles version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                               "total_active_file"};
constexpr GroupFiles version_2{"memory.max", "memory.current", "inactive_file", "active_file"};

// Returns the number in a file. Returns nothing if the file does not exist or has a word instead of a number:
// then there is no limit.
std::optional<std::size_t> number_in(const fs::path& file) {
  std::size_t number = 0;
  std::ifstream stream(file);
  if (stream >> number) return number;
  return std::nullopt;
}

// Returns the sum of the numbers that follow these words at the beginnings of lines.
std::size_t sum_of_lines(const fs::path& file, std::initializer_list<std::string_view> words) {
  std::ifstream stream(file);
  std::size_t sum = 0;
  std::string word;
  for (std::size_t number = 0; stream >> word >> number; stream.ignore(64, '\n'))
    if (std::ranges::find(words, word) != words.end()) sum += number;
  return sum;
}

std::size_t less(std::size_t a, std::size_t b) { return a < b ? 0 : a - b; }

void lower(std::optional<std::size_t>& least, std::size_t value) {
  least = std::min(least.value_or(unlimited), value);
}

void take_group(const fs::path& group, const GroupFiles& files, GroupMemory& memory) {
  const std::optional<std::size_t> limit = number_in(group / files.limit);
  if (!limit) return;
  const std::size_t of_files =
      sum_of_lines(group / "memory.stat", {files.inactive_files, files.active_files});
  const std::size_t used = less(number_in(group / files.usage).value_or(0), of_files);
  lower(memory.limit, *limit);
  lower(memory.available, less(*limit, used));
}

void take_groups(const fs::path& root, fs::path group, const GroupFiles& files, GroupMemory& memory) {
  take_group(root, files, memory);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path())
    take_group(root / group, files, memory);
}

GroupMemory memory_of_own_groups() {
  std::ostringstream groups;
  groups << std::ifstream("/proc/self/cgroup").rdbuf();
  return memory_of_groups(groups.str(), "/sys/fs/cgroup");
}

// Returns the smaller of two numbers of bytes: `of_groups`, and the sum of the lines of /proc/meminfo that
// begin with these words. Those lines are in KiB.
std::size_t least(std::optional<std::size_t> of_groups, std::initializer_list<std::string_view> words) {
  const std::size_t of_system = 1024 * sum_of_lines("/proc/meminfo", words);
  return std::min(of_groups.value_or(unlimited), of_system == 0 ? unlimited : of_system);
}

}  // namespace

std::size_t machine_memory() { return least(memory_of_own_groups().limit, {"MemTotal:"}); }

std::size_t available_memory() {
  return least(memory_of_own_groups().available, {"MemAvailable:", "SwapFree:"});
}

// Lines are "0::/the/group" in version 2, and "5:cpu,memory:/the/group" in version 1.
GroupMemory memory_of_groups(const std::string& groups, const fs::path& root) {
  GroupMemory memory;
  std::istringstream lines(groups);
  std::string number;
  std::string controllers;
  std::string group;
  while (std::getline(lines, number, ':') && std::getline(lines, controllers, ':') &&
         std::getline(lines, group)) {
    if (controllers.empty()) take_groups(root, group, version_2, memory);
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      take_groups(root / "memory", group, version_1, memory);
  }
  return memory;
}

}  // namespace plexaura
