#include "distributed/summing/device_all_reduce.h"

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/device/forwarding_backend.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::device_all_reduce_test {

namespace {

using MakeBackend = std::function<std::shared_ptr<Backend>(int rank)>;

struct Answer {
  bool joined = false;
  std::string library;
  std::string why_not;
};

// Returns the answer of each rank.
std::vector<Answer> join(const std::vector<std::string>& hosts, const MakeBackend& make) {
  std::vector<Answer> answers(hosts.size());
  ThreadNetwork network(static_cast<int>(hosts.size()));
  for (const std::string& end :
       with_hosts(network, hosts, {.deadline_seconds = 10}, [&](Communicator& ranks) {
         const auto backend = make(ranks.rank());
         const JoinedDevices devices = join_devices(ranks, *backend);
         answers[static_cast<std::size_t>(ranks.rank())] = {devices.sums != nullptr, devices.library,
                                                            devices.why_not};
         ranks.barrier("the end");
       }))
    if (end != "fine") throw InternalError("test failed: a rank " + end);
  return answers;
}

std::string why_not(const std::vector<std::string>& hosts, const MakeBackend& make) {
  const std::vector<Answer> answers = join(hosts, make);
  for (const Answer& answer : answers) {
    CHECK_FALSE(answer.joined);
    CHECK(answer.why_not == answers[0].why_not);
  }
  return answers[0].why_not;
}

std::shared_ptr<Backend> far(int) { return open_backend("far"); }
std::shared_ptr<Backend> cpu(int) { return open_backend("cpu"); }

// The far device with another library, or with one that does not work.
class Other final : public ForwardingBackend, public SumsOnDevices {
 public:
  Other(Backend& inner, std::string library)
      : ForwardingBackend(inner), sums_(dynamic_cast<SumsOnDevices&>(inner)), library_(std::move(library)) {}
  std::string sums_library() const override { return library_; }
  std::string device_identity() const override { return sums_.device_identity(); }
  std::string make_sums_token() override { return sums_.make_sums_token(); }
  std::unique_ptr<DeviceSums> join_sums(const std::string&, int, int, double) override {
    throw DeviceError("the link is down");
  }

 private:
  SumsOnDevices& sums_;
  std::string library_;
};

}  // namespace

TEST_CASE("devices join where each rank has one of its own") {
  for (const std::vector<std::string>& hosts : {std::vector<std::string>{"a", "a"}, {"a", "b"}})
    for (const Answer& answer : join(hosts, far)) {
      CHECK(answer.joined);
      CHECK(answer.library == "the far device");
      CHECK(answer.why_not.empty());
    }
}

TEST_CASE("devices do not join where two ranks of a host have the same one") {
  const std::shared_ptr<Backend> one = open_backend("far");
  const std::shared_ptr<Backend> other = open_backend("far");
  const MakeBackend in_turn = [&](int rank) { return rank == 1 ? other : one; };
  CHECK(why_not({"a", "a", "a"}, in_turn) == "ranks 0 and 2 share a device");
  CHECK(join({"a", "a", "b"}, in_turn)[2].joined);
}

TEST_CASE("devices do not join where a rank has no library for that, or another one") {
  CHECK(why_not({"a", "a"}, cpu) == "the device of rank 0 has no library for that");
  CHECK(why_not({"a", "a"}, [](int rank) { return rank == 1 ? cpu(1) : far(0); }) ==
        "the device of rank 1 has no library for that");
  const std::shared_ptr<Backend> inner = open_backend("far");
  const MakeBackend unlike = [&](int rank) {
    return rank == 1 ? std::make_shared<Other>(*inner, "the near device") : far(0);
  };
  CHECK(why_not({"a", "a"}, unlike) == "rank 0 has the far device and rank 1 has the near device");
}

TEST_CASE("all ranks hear where a device cannot join") {
  const std::shared_ptr<Backend> inner = open_backend("far");
  const MakeBackend broken = [&](int rank) {
    return rank == 0 ? std::make_shared<Other>(*inner, "the far device") : far(1);
  };
  CHECK(why_not({"a", "a"}, broken) == "rank 0: the link is down");
}

}  // namespace plexaura::testing::device_all_reduce_test
