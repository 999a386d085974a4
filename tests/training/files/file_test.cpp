#include "training/files/file.h"

#include <cerrno>
#include <cstdio>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/full_disk.h"
#include "tests/support/no_descriptors.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::file_test {

namespace {

// Records the calls of this thread that change files; null records nothing.
thread_local std::vector<std::string>* calls = nullptr;

void note(const std::string& call) {
  if (calls != nullptr) calls->push_back(call);
}

}  // namespace

}  // namespace plexaura::testing::file_test

// These functions replace those of the C library.
extern "C" int fsync(int file) {
  struct stat status {};
  plexaura::testing::file_test::note(::fstat(file, &status) == 0 && S_ISDIR(status.st_mode) ? "fsync(folder)"
                                                                                            : "fsync(file)");
  return static_cast<int>(::syscall(SYS_fsync, file));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  plexaura::testing::file_test::note("rename");
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace plexaura::testing::file_test {

TEST_CASE("an atomic file appears whole, with all its pieces in order") {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.write("one ");
  CHECK(!std::filesystem::exists(folder / "a"));
  file.write("two");
  file.commit();
  CHECK(read_text(folder / "a") == "one two");
  CHECK(folder.files() == 1);
}

TEST_CASE("an atomic file is on the disk before it has its name, and then the name is") {
  const TemporaryFolder folder;
  std::vector<std::string> seen;
  calls = &seen;
  AtomicFile file(folder / "a");
  file.write("text");
  file.commit();
  calls = nullptr;
  CHECK(seen == std::vector<std::string>{"fsync(file)", "rename", "fsync(folder)"});
}

TEST_CASE("an atomic file has the permissions of any new file") {
  const TemporaryFolder folder;
  const mode_t old_mask = ::umask(027);
  AtomicFile file(folder / "a");
  file.commit();
  ::umask(old_mask);
  const auto permissions = std::filesystem::status(folder / "a").permissions();
  CHECK(permissions == static_cast<std::filesystem::perms>(0640));
}

TEST_CASE("without commit the old file stays and the temporary one goes") {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("new");
    CHECK(folder.files() == 2);
  }
  CHECK(read_text(folder / "a") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("a full disk is the user's to mend, is told with the system's reason, and keeps the old file") {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  std::string text;
  {
    const FullDisk full(1000);
    text = user_error([&] {
      AtomicFile file(folder / "a");
      file.write(std::string(5000, 'x'));
      file.commit();
    });
  }
  CHECK(text ==
        "cannot write '" + (folder / "a").string() + "': File too large; free space or name another place");
  CHECK(read_text(folder / "a") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that cannot be created is the user's to mend") {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing" / "a").string();
  CHECK(user_error([&] { AtomicFile file(missing); }) ==
        "cannot create '" + missing +
            "': No such file or directory; name a file in a folder that exists and can be written");
  const std::string itself = folder.path().string();
  CHECK(user_error([&] { AtomicFile file(itself); }) ==
        "cannot write '" + itself + "': it is not a regular file; name another");
  CHECK(user_error([] { AtomicFile file("/dev/full"); }) ==
        "cannot write '/dev/full': it is not a regular file; name another");
  CHECK(user_error([] { AtomicFile file(""); }) == "cannot write '': it is not a regular file; name another");
}

TEST_CASE("a file that cannot be read is the user's to mend, and so is a limit on open files" *
          doctest::skip(!can_lack_descriptors)) {
  const TemporaryFolder folder;
  const std::string path = (folder / "a").string();
  CHECK(user_error([&] { const InputFile file(path); }) ==
        "cannot read '" + path + "': No such file or directory; check the path and its permissions");
  CHECK(user_error([&] { const InputFile file(folder.path()); }) ==
        "cannot read '" + folder.path().string() + "': it is not a regular file; name another");
  write_text(path, "sound");
  const NoDescriptors none;
  CHECK(user_error([&] { const InputFile file(path); }) ==
        "cannot read '" + path + "': Too many open files; raise the limit of this process (ulimit -n)");
}

TEST_CASE("writing a file anew") {
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> bytes(5000, 'x');
  write_text(folder / "a", std::string(9000, 'y'));
  write_file(folder / "a", bytes);
  CHECK(InputFile(folder / "a").read_all() == bytes);
  CHECK(user_error([&] { write_file(folder / "none/a", bytes); }).starts_with("cannot create '"));
  const FullDisk full(1000);
  CHECK(user_error([&] { write_file(folder / "b", bytes); }).find("File too large") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "b"));
}

TEST_CASE("reading a file") {
  const TemporaryFolder folder;
  const std::string path = (folder / "a").string();
  write_text(path, "0123456789");
  SUBCASE("gives its text") { CHECK(read_text_file(path, 10) == "0123456789"); }
  SUBCASE("gives a part") {
    std::string part(3, ' ');
    InputFile(path).read(4, std::as_writable_bytes(std::span(part)));
    CHECK(part == "456");
  }
  SUBCASE("is not led astray by the error of an earlier call") {
    errno = EINTR;
    CHECK(read_text_file(path, 10) == "0123456789");
  }
  SUBCASE("stops at the limit") {
    CHECK(user_error([&] { read_text_file(path, 9); }) ==
          "'" + path + "' has 10 bytes; a file of this kind has at most 9");
  }
  SUBCASE("notices that it became shorter") {
    const InputFile file(path);
    std::filesystem::resize_file(path, 4);
    std::string text(10, ' ');
    CHECK(user_error([&] { file.read(0, std::as_writable_bytes(std::span(text))); }) ==
          "'" + path + "' ends at byte 4, before it was read to its end");
  }
  SUBCASE("names a missing one") {
    CHECK(user_error([] { InputFile("no/such/file"); }) ==
          "cannot read 'no/such/file': No such file or directory; check the path and its permissions");
  }
  SUBCASE("refuses folders, devices and pipes without waiting") {
    const std::string pipe = (folder / "pipe").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    for (const std::string& name : {folder.path().string(), std::string("/dev/zero"), pipe})
      CHECK(user_error([&] { InputFile file(name); }) ==
            "cannot read '" + name + "': it is not a regular file; name another");
  }
}

}  // namespace plexaura::testing::file_test
