#include "core/base/machine_memory.h"

#include <doctest/doctest.h>
#include <fstream>
#include <limits>

#include "tests/support/temporary_folder.h"

namespace plexaura::testing::machine_memory_test {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text << '\n';
}

}  // namespace

TEST_CASE("memory of a machine: the least limit of the group and of those around it counts") {
  const TemporaryFolder root;
  const auto limit = [&](const std::string& groups) { return memory_of_groups(groups, root.path()).limit; };
  write(root / "a/memory.max", "3000");
  write(root / "a/b/memory.max", "max");
  write(root / "a/c/memory.max", "2000");
  CHECK(limit("0::/a/b\n") == 3000);
  CHECK(limit("0::/a/c\n") == 2000);
  CHECK(limit("0::/a/c/not/seen/from/here\n") == 2000);
  CHECK(limit("0::/\n") == std::nullopt);
  write(root / "memory.max", "1000");  // the root, as a container sees its own group
  CHECK(limit("0::/\n") == 1000);
}

TEST_CASE("memory of a machine: groups of version 1") {
  const TemporaryFolder root;
  write(root / "memory/a/memory.limit_in_bytes", "4000");
  CHECK(memory_of_groups("6:cpu,cpuacct:/b\n5:freezer,memory:/a\n0::/\n", root.path()).limit == 4000);
  CHECK(memory_of_groups("6:cpu,cpuacct:/a\n", root.path()).limit == std::nullopt);
  CHECK(memory_of_groups("", root.path()).limit == std::nullopt);
}

TEST_CASE("memory of a machine: what the groups' processes have is not available, but for pages of files") {
  const TemporaryFolder root;
  const auto available = [&](const std::string& groups) {
    return memory_of_groups(groups, root.path()).available;
  };
  write(root / "a/memory.max", "3000");
  CHECK(available("0::/a\n") == 3000);
  write(root / "a/memory.current", "1000");
  CHECK(available("0::/a\n") == 2000);
  write(root / "a/memory.stat", "anon 600\nactive_file 30\ninactive_file 100\nshmem 5");
  CHECK(available("0::/a\n") == 2130);
  write(root / "a/b/memory.max", "1500");
  CHECK(available("0::/a/b\n") == 1500);
  write(root / "a/b/memory.current", "1600");  // more than a limit that was lowered later
  CHECK(available("0::/a/b\n") == 0);
  write(root / "memory/c/memory.limit_in_bytes", "4000");
  write(root / "memory/c/memory.usage_in_bytes", "1000");
  write(root / "memory/c/memory.stat", "inactive_file 1\ntotal_inactive_file 10\ntotal_active_file 200");
  CHECK(available("5:memory:/c\n") == 3210);
  CHECK(available("0::/\n") == std::nullopt);
}

TEST_CASE("memory of a machine: this one has some") {
  CHECK(machine_memory() > (std::size_t{1} << 20));
  CHECK(available_memory() > (std::size_t{1} << 20));
  CHECK(available_memory() < std::numeric_limits<std::size_t>::max());
}

}  // namespace plexaura::testing::machine_memory_test
