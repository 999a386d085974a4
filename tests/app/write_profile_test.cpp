#include "app/write_profile.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <doctest/doctest.h>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include "distributed/communicator/group_communicator.h"
#include "tests/distributed/wire/thread_transport.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::write_profile_test {

namespace {

// Adds more events than a pipe can hold.
void add_events(Profile& profile) {
  for (int i = 0; i < 2000; ++i) profile.add("a long name of an event", "compute", i, 1);
}

}  // namespace

TEST_CASE("the profile of all ranks may take longer to write than ranks wait for each other") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "profile";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::future<std::string> written = std::async(std::launch::async, [&] {
    std::ifstream reader(pipe);
    std::this_thread::sleep_for(std::chrono::milliseconds(4500));
    return std::string(std::istreambuf_iterator<char>(reader), {});
  });
  ThreadNetwork network(3);
  const auto ends = endings(3, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.deadline_seconds = 2, .shared_memory = false});
    Profile profile;
    add_events(profile);
    write_profile(ranks, profile, pipe);
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>(3, "fine"));
  const std::string text = written.get();
  for (const char* rank : {"\"pid\":0", "\"pid\":1", "\"pid\":2"})
    CHECK(text.find(rank) != std::string::npos);
}

TEST_CASE("the profiles of all ranks tell the times of rank 0") {
  const TemporaryFolder folder;
  const std::string path = folder / "profile";
  ThreadNetwork network(3);
  std::barrier together(3);
  const auto ends = endings(3, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.shared_memory = false});
    std::this_thread::sleep_for(std::chrono::milliseconds(300 * rank));
    Profile profile;
    align_clocks(ranks, profile);
    together.arrive_and_wait();
    profile.add("meeting", "compute", profile.now(), 1);
    write_profile(ranks, profile, path);
    ranks.leave(0);
  });
  CHECK(ends == std::vector<std::string>(3, "fine"));
  std::ifstream file(path);
  std::vector<double> times;
  for (std::string line; std::getline(file, line);)
    if (const auto at = line.find("\"ts\":"); at != std::string::npos)
      times.push_back(std::stod(line.substr(at + 5)));
  REQUIRE(times.size() == 3);
  const auto [first, last] = std::ranges::minmax(times);
  CHECK(first > 600e3);         // rank 2 starts this late
  CHECK(last - first < 250e3);  // would be at least 300e3 without aligned clocks
}

TEST_CASE("a rank whose clock does not answer is named after the deadline") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    GroupCommunicator ranks(network.transport(rank), {.deadline_seconds = 1, .shared_memory = false});
    Profile profile;
    if (rank == 0) return align_clocks(ranks, profile);
    std::this_thread::sleep_for(std::chrono::seconds(4));
  });
  CAPTURE(ends);
  CHECK(ends[0].starts_with("says rank 1 did not come to 'the clocks of the ranks'"));
  CHECK(ends[0].find("within 1 s") != std::string::npos);
}

}  // namespace plexaura::testing::write_profile_test
