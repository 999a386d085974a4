// Tests the parts of communicators that need no ranks.
#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"
#include "distributed/communicator/communicator.h"
#include "distributed/node/reduce.h"
#include "distributed/node/shared_window.h"
#include "distributed/wire/call_signature.h"
#include "distributed/wire/failure.h"
#include "distributed/wire/topology.h"
#include "tests/distributed/wire/topology_support.h"

namespace plexaura::testing::parts_test {

TEST_CASE("signatures: what matches, and how it is told") {
  const CallSignature bucket = announce(Call::sum, "bucket 3 of step 17", DType::float32, 4096);
  CHECK(match(bucket, announce(Call::sum, "bucket 3 of step 17", DType::float32, 4096)));
  CHECK_FALSE(match(bucket, announce(Call::sum, "bucket 3 of step 17", DType::float32, 4095)));
  CHECK_FALSE(match(bucket, announce(Call::sum, "bucket 3 of step 17", DType::float64, 4096)));
  CHECK_FALSE(match(bucket, announce(Call::sum, "bucket 4 of step 17", DType::float32, 4096)));
  CHECK_FALSE(match(bucket, announce(Call::barrier, "bucket 3 of step 17")));
  CHECK(match(announce(Call::leave, ""), announce(Call::leave_in_error, "")));
  CHECK(describe(bucket) == "'bucket 3 of step 17' (sum of 4096 float32)");
  CHECK(announce(Call::sum, std::string(500, 'x')).phrase().size() == 97);
  CallSignature paced = bucket;
  paced.pace = 1;
  CHECK(match(bucket, paced));
}

TEST_CASE("topology: nodes are counted by their lowest rank") {
  const Topology topology = on_hosts({"a", "b", "a", "c", "b"}, 4);
  CHECK(topology.nodes() == 3);
  CHECK(topology.by_node() == std::vector<std::vector<int>>{{0, 2}, {1, 4}, {3}});
  CHECK(topology.own_node() == 1);
  CHECK(topology.own_node_rank() == 1);
  const ProcessPlace here = decode_place(encode(this_place()));
  CHECK(here.process == this_place().process);
  CHECK(here.process_start > 0);
  CHECK(here.process_start == this_place().process_start);
  CHECK(here.host == this_place().host);
  CHECK(here.machine == this_place().machine);
  std::string host;
  std::getline(std::ifstream("/proc/sys/kernel/hostname"), host);
  CHECK(here.host == host);
}

TEST_CASE("topology: two machines that bear one name are two nodes, and do not see each other's processes") {
  ProcessPlace here = this_place();
  ProcessPlace there = here;
  there.machine = "another";
  there.process = 1 << 30;  // no process here has this id
  here.number = 1;
  const Topology topology({there, here}, 1);
  CHECK(topology.nodes() == 2);
  CHECK_FALSE(topology.is_dead(0));
}

TEST_CASE("topology: a rank is dead if another process has the id of its process") {
  const ProcessPlace here = this_place();
  ProcessPlace former = here;
  former.process_start -= 1;
  ProcessPlace unknown = here;
  unknown.process_start = 0;
  const Topology topology({here, former, unknown}, 0);
  CHECK_FALSE(topology.is_dead(0));
  CHECK(topology.is_dead(1));
  CHECK_FALSE(topology.has_no_process(1));
  CHECK_FALSE(topology.is_dead(2));
}

TEST_CASE("topology: a stopped process is killed only if it is still that of the rank") {
  const pid_t process = fork();
  REQUIRE(process >= 0);
  if (process == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(process, nullptr, WUNTRACED);
  const ProcessPlace there = place_of(process);
  ProcessPlace former = there;
  former.process_start -= 1;
  const Topology topology({this_place(), there, former}, 0);
  CHECK_FALSE(topology.is_stopped(2));
  CHECK_FALSE(topology.kill_if_stopped(2));
  CHECK(topology.is_stopped(1));
  CHECK(topology.kill_if_stopped(1));
  int status = 0;
  waitpid(process, &status, 0);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("topology: ranks are named with their hosts where there are several") {
  const Topology topology = on_hosts({"a", "a", "b", "a", "b"}, 0);
  CHECK(topology.name(2) == "rank 2 on b");
  CHECK(topology.list({1, 2, 3}) == "ranks 1 and 3 on a, rank 2 on b");
  CHECK(topology.hosts_without({1, 2, 4}) == std::vector<std::string>{"b"});
  CHECK(on_hosts({"a", "a"}, 0).list({0, 1}) == "ranks 0 and 1");
}

TEST_CASE("parts: they cover everything once, cut at cache lines") {
  for (const std::int64_t count : {0, 1, 15, 16, 17, 1000}) {
    std::int64_t next = 0;
    for (int worker = 0; worker < 3; ++worker) {
      const Part part = part_of(count, DType::float32, worker, 3);
      CHECK(part.first == next);
      CHECK((part.first % 16 == 0 || part.count == 0));
      next = part.first + part.count;
    }
    CHECK(next == count);
  }
}

TEST_CASE("sums: three types are added, others are refused") {
  CHECK_NOTHROW(check_summable(DType::int64));
  CHECK_THROWS_AS(check_summable(DType::float16), UserError);
  std::int64_t sum = 1;
  const std::int64_t more = std::numeric_limits<std::int64_t>::max();
  add(DType::int64, reinterpret_cast<std::byte*>(&sum), reinterpret_cast<const std::byte*>(&more), 1);
  CHECK(sum == std::numeric_limits<std::int64_t>::min());  // the sum wraps
}

TEST_CASE("shared segments: aligned, zero, seen at their address until that is closed") {
  std::optional<SharedSegment> one = SharedSegment::create(5000);
  CHECK(reinterpret_cast<std::uintptr_t>(one->data()) % (std::size_t{2} << 20) == 0);
  CHECK(one->data()[4999] == std::byte{0});
  std::optional<SharedSegment> same = SharedSegment::attach(one->address(), 5000);
  REQUIRE(same);
  one->data()[7] = std::byte{42};
  CHECK(same->data()[7] == std::byte{42});
  one->close_to_others();
  CHECK_FALSE(SharedSegment::attach(one->address(), 5000));
  one.reset();
  CHECK(same->data()[7] == std::byte{42});
}

TEST_CASE("shared segments: another memory at the same address is refused") {
  const SharedSegment mine = SharedSegment::create(5000);
  const std::string theirs = mine.address().substr(0, mine.address().find(' ')) + " plexaura-0000";
  CHECK_FALSE(SharedSegment::attach(theirs, 5000));
}

TEST_CASE("shared segments: nothing appears in /dev/shm") {
  const auto names = [] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      if (entry.path().string().find("plexaura") != std::string::npos) found.insert(entry.path());
    }
    return found;
  };
  const std::set<std::string> before = names();
  const SharedSegment segment = SharedSegment::create(5000);
  CHECK(names() == before);
}

TEST_CASE("windows larger than the machine's memory are refused") {
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {std::size_t{1} << 50, most / 2, most}) {
    const auto refused = doctest::Contains("MB: make the model smaller");
    CHECK_THROWS_WITH_AS(SharedSegment::create(bytes), refused, DeviceError);
    CHECK_THROWS_WITH_AS(SharedWindow::make_private(bytes), refused, DeviceError);
  }
}

TEST_CASE("a program that runs alone: a communicator of one rank") {
  const std::unique_ptr<Communicator> alone = make_communicator();
  CHECK(alone->size() == 1);
  CHECK(alone->place().count == 1);
  SharedWindow window = alone->allocate_shared(64, "a window");
  CHECK_FALSE(window.shared());
  alone->sum_window(window, 0, DType::float64, 8, "a window");
  CHECK_THROWS_AS(alone->sum_window(window, 8, DType::float64, 8, "a window"), UserError);
  alone->barrier("a barrier");
  CHECK(alone->gather_all("me", "texts") == std::vector<std::string>{"me"});
  CHECK(alone->duplicate("another")->size() == 1);
  CHECK_THROWS_AS(alone->send({1, 0}, {}, "a message"), UserError);
  alone->leave(0);
  CHECK_THROWS_AS(make_communicator({.deadline_seconds = 0}), UserError);
}

TEST_CASE("lists of ranks") {
  CHECK(list_ranks({3}) == "rank 3");
  CHECK(list_ranks({1, 3}) == "ranks 1 and 3");
  CHECK(list_ranks({0, 1, 3}) == "ranks 0, 1 and 3");
}

}  // namespace plexaura::testing::parts_test
