#include "app/trials/temporary_folder.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::temporary_folder_test {

namespace {

namespace fs = std::filesystem;

void make(const fs::path& folder) { fs::create_directories(folder); }

TEST_CASE("a temporary folder goes with its files and with the folders that were made for it") {
  const TemporaryFolder test;
  fs::create_directories(test / "old");
  {
    const plexaura::TemporaryFolder first(test / "old/a/b/", make), second(test / "old/a/b", make);
    CHECK(first.path() != second.path());
    write_text(first.path() / "file", "text");
  }
  CHECK(test.names() == "old ");
  CHECK(fs::is_empty(test / "old"));
}

TEST_CASE("a folder in which something else was put stays") {
  const TemporaryFolder test;
  {
    const plexaura::TemporaryFolder folder(test / "a/b", make);
    write_text(test / "a/file", "text");
  }
  CHECK(read_text(test / "a/file") == "text");
  CHECK_FALSE(fs::exists(test / "a/b"));
}

TEST_CASE("nothing is left of a temporary folder that cannot be made") {
  const TemporaryFolder test;
  const auto make_outer = [&](const fs::path& folder) { make(folder.parent_path()); };
  CHECK(user_error([&] {
          plexaura::TemporaryFolder(test / "a/b", make_outer);
        }).find("b': No such file or directory; name another folder") != std::string::npos);
  CHECK(test.files() == 0);
}

}  // namespace

}  // namespace plexaura::testing::temporary_folder_test
