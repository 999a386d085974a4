#include "training/files/folder_lock.h"

#include <csignal>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::folder_lock_test {

TEST_CASE("a folder has one holder at a time, and the refusal names it") {
  const TemporaryFolder folder;
  CHECK_FALSE(is_locked(folder.path() / FolderLock::file_name));
  std::optional<FolderLock> first(folder.path());
  const std::string text = user_error([&] { const FolderLock second(folder.path()); });
  CHECK(text.starts_with(fmt::format("another run, process {} on ", ::getpid())));
  CHECK(text.ends_with(" writes its checkpoints into " + folder.path().string() +
                       ": wait until it has ended, or name another folder in output.dir"));
  CHECK(is_locked(folder.path() / FolderLock::file_name));
  first.reset();
  CHECK_FALSE(is_locked(folder.path() / FolderLock::file_name));
  CHECK(user_error([&] { const FolderLock second(folder.path()); }).empty());
}

TEST_CASE("a holder that is killed holds nothing, whatever it leaves in the folder") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const FolderLock held(folder.path());
      write_text(folder / "held", "");
      for (;;) ::pause();
    } catch (...) {
      ::_exit(1);
    }
  }
  while (!std::filesystem::exists(folder / "held")) {
    REQUIRE(::waitpid(child, nullptr, WNOHANG) == 0);
    ::usleep(1000);
  }
  CHECK(user_error([&] {
          const FolderLock lock(folder.path());
        }).starts_with(fmt::format("another run, process {} on ", child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(user_error([&] { const FolderLock lock(folder.path()); }).empty());
}

TEST_CASE("the folder of a holder that is given up can be taken, and it does not get it back") {
  const TemporaryFolder folder;
  FolderLock lost(folder.path());
  std::vector<std::string> given_up{"process 1 on the moon"};
  CHECK(user_error([&] {
          const FolderLock other(folder.path(), given_up);
        }).starts_with("another run, process "));
  given_up.push_back(this_process());
  const FolderLock taken(folder.path(), given_up);
  CHECK(user_error([&] { lost.renew(); }).starts_with("another run, process "));
  CHECK(user_error([&] { const FolderLock third(folder.path()); }).starts_with("another run, process "));
}

TEST_CASE("a folder that is not there cannot be locked") {
  const TemporaryFolder folder;
  CHECK(
      user_error([&] {
        const FolderLock lock(folder / "none");
      }).starts_with("cannot create '" + (folder / "none/.lock").string() + "': No such file or directory"));
}

}  // namespace plexaura::testing::folder_lock_test
