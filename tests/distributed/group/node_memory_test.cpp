#include "distributed/group/node_memory.h"

#include <doctest/doctest.h>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace plexaura::testing::node_memory_test {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text << '\n';
}

}  // namespace

TEST_CASE("node memory: the least limit of the group and of those around it counts") {
  const TemporaryFolder root;
  const auto limit = [&](const std::string& groups) { return limit_of_groups(groups, root.path()); };
  write(root / "a/memory.max", "3000");
  write(root / "a/b/memory.max", "max");
  write(root / "a/c/memory.max", "2000");
  CHECK(limit("0::/a/b\n") == 3000);
  CHECK(limit("0::/a/c\n") == 2000);
  CHECK(limit("0::/a/c/not/seen/from/here\n") == 2000);
  CHECK(limit("0::/\n") == std::nullopt);
  write(root / "memory.max", "1000");  // as a container sees its own group
  CHECK(limit("0::/\n") == 1000);
}

TEST_CASE("node memory: groups of version 1") {
  const TemporaryFolder root;
  write(root / "memory/a/memory.limit_in_bytes", "4000");
  CHECK(limit_of_groups("6:cpu,cpuacct:/b\n5:freezer,memory:/a\n0::/\n", root.path()) == 4000);
  CHECK(limit_of_groups("6:cpu,cpuacct:/a\n", root.path()) == std::nullopt);
  CHECK(limit_of_groups("", root.path()) == std::nullopt);
}

TEST_CASE("node memory: all windows together have to fit") {
  CHECK(fits(500, 2, 1000));
  CHECK_FALSE(fits(501, 2, 1000));
  CHECK_FALSE(fits(std::size_t{1} << 63, 4, std::size_t{1} << 40));
  CHECK(memory_of_node() > (std::size_t{1} << 20));
}

}  // namespace plexaura::testing::node_memory_test
