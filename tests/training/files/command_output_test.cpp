#include "training/files/command_output.h"

#include <array>
#include <chrono>
#include <csignal>
#include <doctest/doctest.h>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

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

// Waits until the process whose number the file contains has ended. Returns false if it lives on.
bool is_gone(const std::string& file) {
  pid_t process = 0;
  std::ifstream(file) >> process;
  REQUIRE(process > 0);
  for (int i = 0; i < 1000; ++i) {
    std::string state;
    std::ifstream status("/proc/" + std::to_string(process) + "/stat");
    // Its parent may still have to take note of its end.
    if (!std::getline(status, state) || contains(state, ") Z")) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
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

TEST_CASE("a wait for a silent command ends when it is asked to") {
  int asked = 0;
  const auto third_time = [&] { return ++asked == 3; };
  CommandOutput silent("exec sleep 600");
  CHECK(!silent.wait(third_time));
  CHECK(asked == 3);
  const auto at_once = [] { return true; };
  for (const char* const command : {"echo row; exec sleep 600", "exit 3"}) {
    CommandOutput output(command);
    CHECK(output.wait([] { return false; }));
    CHECK(output.wait(at_once));
  }
  CommandOutput done("true");
  CHECK(all_of(done).empty());
  CHECK(done.wait(at_once));
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
  for (const char* const child : {"sleep 600", "sh -c \"trap '' TERM; exec sleep 600\""}) {
    CAPTURE(child);
    {
      CommandOutput output(std::string("trap '' PIPE; ") + child + " & echo $! > " + file +
                           "; sleep 0.3; echo begun; wait");
      std::array<char, 6> block{};
      CHECK(output.read(block) > 0);
    }
    CHECK(is_gone(file));
  }
}

TEST_CASE("a status that cannot be read is an error, and no end") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  CHECK(contains(device_error([] { all_of("exit 3"); }), "its status cannot be read: No child processes"));
  std::signal(SIGCHLD, before);
}

TEST_CASE("all commands that run can be asked to end") {
  const std::string endless = "echo begun; while sleep 0.05; do :; done";
  CommandOutput one(endless);
  CommandOutput other(endless);
  for (CommandOutput* const output : {&one, &other}) {
    std::array<char, 6> block{};
    CHECK(output->read(block) > 0);
  }
  CommandOutput::end_all();
  for (CommandOutput* const output : {&one, &other})
    CHECK(contains(user_error([&] { all_of(*output); }), "was ended by signal 15"));
}

TEST_CASE("more commands than may run are an error, and ended ones make room") {
  {
    std::vector<std::unique_ptr<CommandOutput>> many;
    for (int i = 0; i < 64; ++i) many.push_back(std::make_unique<CommandOutput>("exec sleep 600"));
    CHECK(contains(device_error([] { const CommandOutput one_more("echo x"); }), "because 64 others do"));
  }
  CHECK(all_of("echo x") == "x\n");
}

}  // namespace plexaura::testing::command_output_test
