#include "distributed/failure/alarm.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <doctest/doctest.h>
#include <future>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/exchange/rank_lost.h"
#include "distributed/failure/rank_wait.h"
#include "tests/distributed/wire/thread_transport.h"
#include "tests/distributed/wire/topology_support.h"

namespace plexaura::testing::alarm_test {
namespace {

constexpr double test_deadline = 0.25;
// docs/reference/distributed.md says that all ranks end at most three seconds after the deadline. Ranks that
// wrongly wait for three deadlines need six seconds here, and the test fails. Correct ranks need about three
// of the five seconds, so a loaded machine has time to spare.
constexpr double long_deadline = 2;
constexpr double longest_wait = long_deadline + 3;

void wait_in_vain(Alarm& alarm, const std::string& what, double deadline_seconds = test_deadline,
                  const std::vector<int>& members = {}) {
  const CallSignature at = announce(Call::barrier, what);
  for (RankWait wait(alarm, {at, deadline_seconds, members});;) wait.pause();
}

// Returns how ranks on these hosts end if all but `absent` wait at a barrier.
std::vector<std::string> without(int absent, const std::vector<std::string>& hosts, ThreadNetwork& network,
                                 double deadline_seconds = test_deadline) {
  return endings(static_cast<int>(hosts.size()), [&](int rank) {
    Alarm alarm(network.transport(rank));
    alarm.set_topology(on_hosts(hosts, rank));
    if (rank != absent) wait_in_vain(alarm, "bucket 3", deadline_seconds);
  });
}

int id_of_dead_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

// A process that does nothing. The destructor kills it if it still lives.
class Sleeper {
 public:
  Sleeper() : id_(fork()) {
    if (id_ != 0) return;
    while (true) pause();
  }
  ~Sleeper() {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  ProcessPlace place() const { return place_of(id_); }
  void stop() const {
    kill(id_, SIGSTOP);
    waitpid(id_, nullptr, WUNTRACED);
  }
  // Returns the signal that has killed the process, or 0 while it lives.
  int death() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == id_ ? info.si_status : 0;
  }

 private:
  pid_t id_;
};

// Returns how three ranks of one host end if rank 2, whose process is `process`, does not come. The ranks may
// outlive others. `members`: the ranks of the call at which ranks 0 and 1 wait.
std::vector<std::string> without_process(const Sleeper& process, const std::vector<int>& members = {}) {
  ThreadNetwork network(3);
  std::atomic<int> waiting = 2;
  return endings(3, [&](int rank) {
    std::vector<ProcessPlace> places{this_place(), this_place(), process.place()};
    for (int other = 0; other < 3; ++other) places[static_cast<std::size_t>(other)].number = other;
    Alarm alarm(network.transport(rank), true);
    alarm.set_topology({places, rank});
    if (rank == 2) {
      while (waiting > 0 && process.death() == 0) std::this_thread::yield();
      if (process.death() != 0) network.bury(2);
      return;
    }
    try {
      wait_in_vain(alarm, "bucket 3", rank == 0 ? 60 : test_deadline, members);
    } catch (...) {
      --waiting;
      throw;
    }
  });
}

}  // namespace

TEST_CASE("alarm: ranks that outlive others kill one that is stopped, and none that is at work") {
  const Sleeper stopped;
  stopped.stop();
  CHECK(without_process(stopped) ==
        std::vector<std::string>{
            "says rank 2 on " + this_place().host + " has died while rank 0 waited at 'bucket 3' (barrier)",
            "hears rank 2 on " + this_place().host + " has died while rank 1 waited at 'bucket 3' (barrier)",
            "fine"});
  CHECK(stopped.death() == SIGKILL);
  const Sleeper at_work;
  const auto ends = without_process(at_work);
  const std::string text =
      "rank 2 did not come to 'bucket 3' (barrier) within 0.25 s: stopped, stuck, or still at work elsewhere";
  CHECK(ends == std::vector<std::string>{"hears " + text, "says " + text, "fine"});
  CHECK(at_work.death() == 0);
}

// A rank of the call may wait for the stopped rank in another call.
TEST_CASE("alarm: ranks that outlive others kill one that is stopped and does not belong to their call") {
  const Sleeper stopped;
  stopped.stop();
  const auto ends = without_process(stopped, {0, 1});
  CHECK(ends[1] ==
        "hears rank 2 on " + this_place().host + " has died while rank 1 waited at 'bucket 3' (barrier)");
  CHECK(stopped.death() == SIGKILL);
}

TEST_CASE("alarm: a rank that outlives others gives up those that it does not reach, together") {
  ThreadNetwork network(3);
  network.cut(1);
  network.cut(2);
  endings(3, [&](int rank) {
    if (rank != 0) return;
    Alarm alarm(network.transport(rank), true);
    alarm.set_topology(on_hosts({"a", "b", "b"}, rank));
    try {
      wait_in_vain(alarm, "bucket 3");
    } catch (const RankLost& loss) {
      CHECK(loss.is_outlived());
      CHECK(loss.ranks() == std::vector<int>{1, 2});
    }
  });
}

TEST_CASE("alarm: a rank that is spared ends no wait, is asked nothing and is named nowhere") {
  ThreadNetwork network(3);
  network.bury(1);
  const auto ends = endings(3, [&](int rank) {
    if (rank != 0) return;
    Alarm alarm(network.transport(rank), true);
    alarm.set_topology(on_hosts({"a", "b", "c"}, rank));
    const std::vector<int> spared{1};
    const CallSignature at = announce(Call::barrier, "bucket 3");
    for (RankWait wait(alarm, {at, test_deadline, {}, spared});;) wait.pause();
  });
  CHECK(ends[0].starts_with("says rank 2 on c did not come to 'bucket 3' (barrier) within 0.25 s: "));
}

// Rank 1 answers rank 0's first question, after which rank 2 is found stopped. It does not answer the second
// one.
TEST_CASE("alarm: a rank that was asked before is asked again") {
  const Sleeper stopped;
  stopped.stop();
  ThreadNetwork network(3);
  std::atomic<bool> is_over = false;
  const auto ends = endings(3, [&](int rank) {
    std::vector<ProcessPlace> places{this_place(), this_place(), stopped.place()};
    for (int other = 0; other < 3; ++other) places[static_cast<std::size_t>(other)].number = other;
    Alarm alarm(network.transport(rank), true);
    alarm.set_topology({places, rank});
    if (rank == 2) {
      while (stopped.death() == 0) std::this_thread::yield();
      return network.bury(2);
    }
    try {
      wait_in_vain(alarm, "bucket 3", rank == 0 ? test_deadline : 60);
    } catch (const RankLost&) {
    }
    if (rank == 1) {
      while (!is_over) std::this_thread::yield();
      return;
    }
    const std::vector<int> spared{2};
    const CallSignature at = announce(Call::barrier, "bucket 4");
    try {
      for (RankWait wait(alarm, {at, test_deadline, {}, spared});;) wait.pause();
    } catch (...) {
      is_over = true;
      throw;
    }
  });
  CHECK(ends[0].starts_with("says rank 1 did not come to 'bucket 4' (barrier) within 0.25 s: "));
}

TEST_CASE("alarm: of the ranks that wait one names the rank that does not, the others keep silent") {
  ThreadNetwork network(4);
  const std::string text =
      "rank 1 did not come to 'bucket 3' (barrier) within 2 s: stopped, stuck, or still at work elsewhere";
  const double begin = seconds_now();
  const auto ends = without(1, {"a", "a", "a", "a"}, network, long_deadline);
  CHECK(seconds_now() - begin < longest_wait);
  CHECK(ends == std::vector<std::string>{"says " + text, "fine", "hears " + text, "hears " + text});
}

TEST_CASE("alarm: each rank that outlives others hears of their death by itself, and at once") {
  ThreadNetwork network(4);
  network.bury(0);
  network.bury(2);
  const auto ends = endings(4, [&](int rank) {
    Alarm alarm(network.transport(rank), true);
    alarm.set_topology(on_hosts({"a", "b", "b", "a"}, rank));
    try {
      if (rank % 2 == 1) wait_in_vain(alarm, "bucket 3", 60);
    } catch (const RankLost& loss) {
      if (!loss.is_outlived() || loss.ranks() != std::vector<int>{0, 2}) throw InternalError("another loss");
      throw;
    }
  });
  CHECK(ends[1] == "says rank 0 on a has died while rank 1 waited at 'bucket 3' (barrier)");
  CHECK(ends[3] == "hears rank 0 on a has died while rank 3 waited at 'bucket 3' (barrier)");
}

TEST_CASE(
    "alarm: a rank whose turns take long, as on a machine without a free core, hears of a death in one of "
    "the next") {
  ThreadNetwork network(2);
  network.bury(0);
  const auto ends = endings(2, [&](int rank) {
    Alarm alarm(network.transport(rank), true);
    alarm.set_topology(on_hosts({"a", "b"}, rank));
    if (rank == 0) return;
    const CallSignature at = announce(Call::barrier, "bucket 3");
    RankWait wait(alarm, {at, 60, {}});
    for (int turn = 0; turn < 3; ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      wait.pause();
    }
  });
  CHECK(ends[1] == "says rank 0 on a has died while rank 1 waited at 'bucket 3' (barrier)");
}

TEST_CASE("alarm: a rank that finds a verdict and dead ranks ends with the verdict") {
  ThreadNetwork network(2);
  std::promise<void> told;
  const auto ends = endings(2, [&](int rank) {
    Alarm alarm(network.transport(rank), true);
    alarm.set_topology(on_hosts({"a", "b"}, rank));
    if (rank == 1) {
      told.get_future().wait();
      wait_in_vain(alarm, "bucket 3", 60);
    }
    try {
      alarm.fail("it is over");
    } catch (...) {
      network.bury(0);
      told.set_value();
      throw;
    }
  });
  CHECK(ends == std::vector<std::string>{"says it is over", "hears it is over"});
}

TEST_CASE("alarm: a silent host is named, whoever waited for whom") {
  ThreadNetwork network(4);
  const auto ends = without(3, {"a", "a", "b", "c"}, network);
  CHECK(count_endings(ends,
                      "says rank 3 on c did not come to 'bucket 3' (barrier) within 0.25 s: stopped, "
                      "stuck, still at work elsewhere, or the link to c is down") == 1);
  CHECK(count_endings(ends, "hears rank 3 on c did not come") == 2);
}

TEST_CASE("alarm: where a link is cut each side names the other") {
  ThreadNetwork network(4);
  network.cut(3);
  const double begin = seconds_now();
  const auto ends = without(-1, {"a", "a", "b", "c"}, network, long_deadline);
  CHECK(seconds_now() - begin < longest_wait);
  CHECK(count_endings(ends, "says rank 3 on c did not come") == 1);
  CHECK(count_endings(ends, "hears rank 3 on c did not come") == 2);
  CHECK(ends[3] ==
        "says ranks 0 and 1 on a, rank 2 on b did not come to 'bucket 3' (barrier) within 2 s: stopped, "
        "stuck, still at work elsewhere, or the link of c to a or b is down");
}

TEST_CASE("alarm: ranks that wait for each other at different calls") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    Alarm alarm(network.transport(rank));
    wait_in_vain(alarm, rank == 0 ? "bucket 3" : "the loss", rank == 0 ? 1 : 60);
  });
  const std::string text =
      "rank 0 waited 1 s at 'bucket 3' (barrier) while rank 1 waits at 'the loss' (barrier): all ranks "
      "must "
      "make the same calls in the same order";
  CHECK(ends == std::vector<std::string>{"says " + text, "hears " + text});
}

TEST_CASE("alarm: a rank that came too late is not called lost") {
  ThreadNetwork network(2);
  const auto ends = endings(2, [&](int rank) {
    Alarm alarm(network.transport(rank));
    wait_in_vain(alarm, "bucket 3", rank == 0 ? 1 : 60);
  });
  CHECK(count_endings(ends,
                      "says rank 0 waited 1 s at 'bucket 3' (barrier), where all ranks are "
                      "now: a rank was late") == 1);
}

TEST_CASE("alarm: a dead rank is named once, with its host") {
  ThreadNetwork network(4);
  const int dead = id_of_dead_process();
  const auto ends = endings(4, [&](int rank) {
    Alarm alarm(network.transport(rank));
    std::vector<ProcessPlace> places(4, this_place());
    places[2].process = dead;
    for (int other = 0; other < 4; ++other) {
      places[static_cast<std::size_t>(other)].host = "h7";
      places[static_cast<std::size_t>(other)].number = other;
    }
    alarm.set_topology({places, rank});
    if (rank != 2) wait_in_vain(alarm, "bucket 3", 60);
  });
  CHECK(count_endings(ends, "says rank 2 on h7 has died while rank 0 waited at 'bucket 3' (barrier)") == 1);
  CHECK(count_endings(ends, "hears rank 2 on h7 has died") == 2);
}

TEST_CASE("alarm: ranks that wait hear of a failure elsewhere") {
  ThreadNetwork network(3);
  const auto fails = endings(3, [&](int rank) {
    Alarm alarm(network.transport(rank));
    if (rank == 1) alarm.fail("broken");
    wait_in_vain(alarm, "bucket 3", 60);
  });
  CHECK(fails == std::vector<std::string>{"hears broken", "says broken", "hears broken"});

  ThreadNetwork other(2);
  const auto leaves = endings(2, [&](int rank) {
    Alarm alarm(other.transport(rank));
    const CallSignature leaving = announce(Call::leave_in_error, "");
    if (rank == 1) alarm.give_up({leaving, test_deadline, {}});
    wait_in_vain(alarm, "bucket 3", 60);
  });
  CHECK(leaves ==
        std::vector<std::string>(2, "hears rank 1 has left with an error of its own, which it reports"));
}

TEST_CASE("alarm: of the ranks that are silent those are named that make the call") {
  ThreadNetwork network(4);
  const std::vector<int> even{0, 2};
  const auto ends = endings(4, [&](int rank) {
    Alarm alarm(network.transport(rank));
    if (rank == 0) wait_in_vain(alarm, "a call of the even ranks", test_deadline, even);
  });
  CHECK(ends[0] ==
        "says rank 2 did not come to 'a call of the even ranks' (barrier) within 0.25 s: stopped, stuck, or "
        "still at work elsewhere");
}

TEST_CASE("alarm: a rank that the others of a call may wait for is named as silent, not as missing there") {
  ThreadNetwork network(4);
  const std::vector<int> even{0, 2};
  const auto ends = endings(4, [&](int rank) {
    Alarm alarm(network.transport(rank));
    if (rank == 0) wait_in_vain(alarm, "a call of the even ranks", test_deadline, even);
    if (rank != 1) wait_in_vain(alarm, "a call of all", 60);
  });
  const std::string text =
      "rank 0 waited 0.25 s at 'a call of the even ranks' (barrier) while rank 2 waits at 'a call of all' "
      "(barrier), and rank 1 did not answer: stopped, stuck, or still at work elsewhere";
  CHECK(ends == std::vector<std::string>{"says " + text, "fine", "hears " + text, "hears " + text});
}

TEST_CASE("alarm: two threads of a rank that hear of a failure end at the same time") {
  using Clock = std::chrono::steady_clock;
  ThreadNetwork network(2);
  std::array<Clock::time_point, 2> end;
  endings(2, [&](int rank) {
    Alarm alarm(network.transport(rank));
    if (rank == 0) alarm.fail("broken");
    const auto wait = [&](std::size_t thread) {
      CHECK_THROWS_AS(wait_in_vain(alarm, "bucket 3", 60), DeviceError);
      end.at(thread) = Clock::now();
    };
    std::thread other(wait, 0);
    wait(1);
    other.join();
  });
  CHECK(std::chrono::abs(end[0] - end[1]) < std::chrono::milliseconds(300));
}

}  // namespace plexaura::testing::alarm_test
