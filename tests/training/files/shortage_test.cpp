#include "training/files/shortage.h"

#include <cerrno>
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "core/base/error.h"
#include "tests/support/own_process.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/files/file.h"

namespace plexaura::testing::shortage_test {
namespace {

// Mounts a file system that only this process sees. Returns false without root.
bool mount_own(const std::filesystem::path& folder, const char* options) {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", folder.c_str(), "tmpfs", 0, options) == 0;
}

// Returns the error of a process that creates files in its own file system until that fails.
std::string what_ends_files(const std::filesystem::path& folder, const char* options) {
  return what_ends([&] {
    if (!mount_own(folder, options)) throw UserError("no file system of its own");
    for (int i = 0; i < 100; ++i) {
      AtomicFile file(folder / ("a" + std::to_string(i)));
      file.write(std::string(4096, 'x'));
      file.commit();
    }
  });
}

}  // namespace

TEST_CASE("shortage: a file system without inodes is told from one without space") {
  const TemporaryFolder folder;
  const std::string file = "'" + (folder / "a2").string() + "'";
  const std::string inodes = what_ends_files(folder.path(), "size=1m,nr_inodes=3");
  if (inodes == "no file system of its own") return;
  CHECK(inodes == "cannot create " + file + ": no inodes left; remove files there or name another place");
  CHECK(what_ends_files(folder.path(), "size=8k,nr_inodes=100") ==
        "cannot write " + file + ": No space left on device; free space or name another place");
}

TEST_CASE("shortage: of space, and of nothing") {
  const auto space = shortage_at("no/such/folder/a", ENOSPC);
  REQUIRE(space.has_value());
  CHECK(space->remedy == "free space");
  CHECK(shortage_at("a", EDQUOT)->reason == "Disk quota exceeded");
  CHECK_FALSE(shortage_at("a", ENOENT).has_value());
}

// The sanitizer itself needs a descriptor when it sees a class for the first time.
TEST_CASE("shortage: of open files, which another place would not mend" * doctest::skip(address_sanitized)) {
  const TemporaryFolder folder;
  const std::string file = "'" + (folder / "a").string() + "'";
  const std::string remedy = ": Too many open files; raise the limit of this process (ulimit -n)";
  const auto what_ends_without_files = [](const auto& work) {
    return what_ends([&] {
      const rlimit none{0, 0};
      setrlimit(RLIMIT_NOFILE, &none);
      try {
        work();
      } catch (const UserError& error) {
        throw UserError(std::string("the user's: ") + error.what());
      }
    });
  };
  CHECK(what_ends_without_files([&] { InputFile(folder / "a"); }) ==
        "the user's: cannot read " + file + remedy);
  CHECK(what_ends_without_files([&] { AtomicFile(folder / "a"); }) ==
        "the user's: cannot create " + file + remedy);
  CHECK(what_ends_without_files([&] { newest_checkpoint(folder.path()); }) ==
        "the user's: cannot read " + folder.path().string() + remedy);
  CHECK(remedy_of_limit(ENFILE) == "raise the limit of this machine (fs.file-max), or end other programs");
  CHECK(remedy_of_limit(ENOSPC).empty());
}

}  // namespace plexaura::testing::shortage_test
