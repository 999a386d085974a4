#include "models/config/home_folder.h"

#include <cstdlib>
#include <doctest/doctest.h>

#include "tests/models/config/iris_yaml.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::home_folder_test {

namespace {

// Sets the variable HOME for one case; null unsets it.
class Home {
 public:
  explicit Home(const char* value) : before_(std::getenv("HOME") == nullptr ? "" : std::getenv("HOME")) {
    set(value);
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
  ~Home() { set(before_.c_str()); }

 private:
  static void set(const char* value) {
    if (value == nullptr)
      unsetenv("HOME");
    else
      setenv("HOME", value, 1);
  }
  std::string before_;
};

}  // namespace

TEST_CASE("a tilde at the beginning of a path is the home folder") {
  const Home home("/home/ada");
  CHECK(expand_home("~") == "/home/ada");
  CHECK(expand_home("~/runs/1") == "/home/ada/runs/1");
  for (const char* path : {"", "runs", "./~", "./~/runs", "/data/~", "a~", "costs/5$", "a$1"})
    CHECK(expand_home(path) == path);
}

TEST_CASE("what a shell would have replaced is no name of a folder unless it is there") {
  CHECK(user_error([] { expand_home("~ada/runs"); }) ==
        "is '~ada/runs', but '~' means the home folder only in '~/'; write the whole path");
  for (const std::string path : {"$HOME/runs", "/data/$USER", "${TMPDIR}/x"})
    CHECK(user_error([&] { expand_home(path); }) ==
          "is '" + path +
              "', but variables are not replaced in a configuration; write the value of the variable");
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "$HOME");
  CHECK(expand_home((folder / "$HOME").string()) == folder / "$HOME");
}

TEST_CASE("a tilde without a home folder is an error") {
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const Home home(value);
    CHECK(user_error([] { expand_home("~/runs"); }) ==
          "begins with '~', but the variable HOME, which would replace it, is not set; write the whole path");
    CHECK(expand_home("runs") == "runs");
  }
}

TEST_CASE("the paths of a configuration have a home folder, in the file and in overrides") {
  const Home home("/home/ada");
  CHECK(parsed("output: {dir: ~/runs}").section("output").location("dir") == "/home/ada/runs");
  const Config config = parsed("data:\n  path: x\n", {"data.path=~/table.csv"});
  CHECK(config.section("data").location("path") == "/home/ada/table.csv");
  CHECK(config.values().at("data.path") == "\"/home/ada/table.csv\"");
  CHECK(user_error([] { parsed("data:\n  path: ~ada/x\n").section("data").location("path"); }) ==
        "iris.yaml:2:9: data.path is '~ada/x', but '~' means the home folder only in '~/'; write the "
        "whole path");
}

}  // namespace plexaura::testing::home_folder_test
