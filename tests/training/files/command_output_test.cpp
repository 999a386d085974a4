#include "training/files/command_output.h"

#include <array>
#include <chrono>
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::command_output_test {
namespace {

std::string all_of(CommandOutput& output) {
  std::string text;
  std::array<char, 5> block{};
  while (const std::size_t count = output.read(block)) text.append(block.data(), count);
  return text;
}

std::string all_of(const std::string& command) {
  CommandOutput output(command);
  return all_of(output);
}

}  // namespace

TEST_CASE("the output of a command is read to its end") {
  CHECK(all_of("printf 'one\\ntwo\\n'; printf three") == "one\ntwo\nthree");
  CHECK(all_of("cat").empty());  // its input is empty
  CHECK(all_of("true").empty());
  CommandOutput output("true");
  CHECK(all_of(output).empty());
  CHECK(all_of(output).empty());
}

TEST_CASE("a command that fails or is killed is an error, and no end") {
  CHECK(
      user_error([] { all_of("echo row; exit 3"); }) ==
      "the command `echo row; exit 3` was to print rows, and has ended with status 3 after 4 bytes, so that "
      "rows may be missing; correct the command");
  CHECK(contains(user_error([] { all_of("echo row; kill -9 $$"); }), "was ended by signal 9 after 4 bytes"));
  CHECK(contains(user_error([] { all_of("no-such-program 2> /dev/null"); }), "has ended with status 127"));
}

TEST_CASE("a command whose output is no longer needed is ended with its children") {
  const TemporaryFolder folder;
  const std::string file = (folder / "process").string();
  {
    CommandOutput output("trap '' PIPE; sleep 600 & echo $! > " + file + "; echo begun; wait");
    std::array<char, 6> block{};
    CHECK(output.read(block) > 0);
  }
  pid_t child = 0;
  std::ifstream(file) >> child;
  REQUIRE(child > 0);
  // The child belongs to another process now, which has to take note of its end.
  bool is_gone = false;
  for (int i = 0; i < 1000 && !is_gone; ++i) {
    std::string state;
    std::ifstream status("/proc/" + std::to_string(child) + "/stat");
    is_gone = !std::getline(status, state) || contains(state, ") Z");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(is_gone);
}

}  // namespace plexaura::testing::command_output_test
